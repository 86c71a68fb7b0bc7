"""What all tests share: helpers importable as `tests.<name>`, property tests that draw the same examples in every run, and installing missing programs."""

import contextlib
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from ansor.support.settings import cache_part

if TYPE_CHECKING:
    from tests.programs import Bench

sys.path.append(str(Path(__file__).parent.parent))  # at the end, so that an installed package comes first

# A failing run has to be due to the change it ran on; `tests/fuzz.py` draws new examples.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is collected."""
    from ansor.run import kept_picks, machine_model  # not at the top: this file is read before the path is set
    from ansor.support import kept_data
    from tests import left_behind

    left_behind.watch()
    machine_model.FOLDER = "models-of-tests"  # a model that was fitted to this machine changes what is picked
    kept_picks.ENABLED = kept_data.ENABLED = False  # one test must not find what another one kept
    if worker := os.environ.get("PYTEST_XDIST_WORKER", ""):
        # Measurements exclude each other by a lock in the cache folder. Two workers of one run need not wait for each other: no test asserts times.
        own = cache_part(f"tests-{worker}")
        # Building the C library of each target system takes 40 s of processor time, the harness of each board 2 s. Nothing makes room among libraries, so those
        # of tests are apart from the user's.
        for part, shared in (("zig", "zig"), ("libraries", "tests-libraries")):
            with contextlib.suppress(FileExistsError):
                (own / part).symlink_to(cache_part(shared))
        os.environ["ANSOR_CACHE"] = str(own)
    if sys.dont_write_bytecode:  # otherwise the hundreds of processes that tests start would each compile what they import: they share a folder instead
        folder = tempfile.mkdtemp(prefix="ansor-tests-bytecode-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    """Random numbers from a seed, and nothing that `torch.compile` has compiled before."""
    import torch

    torch.manual_seed(0)
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> "Bench":
    """The embedded compiler, quick rather than optimising."""
    from ansor.codegen.toolchain import find_compiler, prepare
    from tests.programs import Bench

    compiler = find_compiler()
    prepare(compiler)
    return Bench(compiler, tmp_path_factory.mktemp("bench"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("lightgbm") is not None and not _lightgbm_loads():
        pytest.skip("the LightGBM library does not load on this machine (it needs libgomp.so.1)")


@cache
def _lightgbm_loads() -> bool:
    try:
        importlib.import_module("lightgbm")
    except (ImportError, OSError):
        return False
    return True


@pytest.fixture(scope="session")
def emulators() -> None:
    """Requires QEMU's user mode, which is installed if possible; otherwise the test is skipped."""
    from tests.emulators import need_emulators  # not at the top: this file is read before the path is set

    need_emulators()


@pytest.fixture(scope="session")
def boards() -> None:
    """Requires simulators of boards, which are installed if possible."""
    from tests.emulators import need_micro

    need_micro()


@pytest.fixture(autouse=True)
def kinds_of_targets() -> Iterator[None]:
    """Kinds of targets that a test registers are forgotten after it."""
    base = sys.modules.get("ansor.targets.base")
    if base is None:
        yield
        return
    known = set(base._kinds)
    yield
    for name in set(base._kinds) - known - set(base.BUILTIN):
        del base._kinds[name]
