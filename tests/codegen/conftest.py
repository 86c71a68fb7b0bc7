from pathlib import Path

import pytest

from tests.programs import Bench


@pytest.fixture
def shipped(bench: Bench, tmp_path: Path) -> Bench:
    """The embedded compiler with the flags of every kernel."""
    return Bench(bench.compiler, tmp_path, ())
