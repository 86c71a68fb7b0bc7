
import pytest

from ansor.codegen.toolchain import find_compiler, prepare
from tests.programs import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The embedded compiler, which compiles fast rather than optimising."""
    compiler = find_compiler()
    prepare(compiler)
    return Bench(compiler, tmp_path_factory.mktemp("states"))
