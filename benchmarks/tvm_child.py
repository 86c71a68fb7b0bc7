"""The child process of tvm_files.py: runs one of TVM's own files with our names in place of TVM's.

    python benchmarks/tvm_child.py FILE REPORT          # a script of gallery/, unchanged except for trial counts
    python -m pytest FILE -p tvm_child ...              # a file of tests/, with TVM's own test support from the checkout

Each writes a line of JSON for the script, or for each test: {"name", "outcome", "error"}.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import random
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import NoReturn

import numpy
import old_numpy
import pytest

from ansor.compat import tvm
from ansor.compat.tvm import alias
from ansor.compat.tvm.missing import MissingModuleError, MissingNameError, sentence

TRIAL_WORDS = ("num_measure_trials", "n_trial", "num_measures_per_round")
SUPPORT = ("ansor.compat.tvm.testing.", "ansor.compat.tvm.topi.testing")
STAND_INS = ("arith", "tir", "_ffi", "contrib.cudnn", "contrib.hexagon", "contrib.hexagon._ci_env_check")
LATER = ("relay",)
HALF = ("float16", "bfloat16")
RUNS, STOPS, FAILS = "runs", "stops", "fails"


class FewerTrials(ast.NodeTransformer):
    """Numbers given as `num_measure_trials=`, `n_trial=` or `num_measures_per_round=`, or under these keys of a dict, are at most `most`."""

    def __init__(self, most: int) -> None:
        self.most = most

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        """`n_trial=1000`."""
        self.generic_visit(node)
        if node.arg in TRIAL_WORDS:
            node.value = self._fewer(node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        """`{"n_trial": 1000}`."""
        self.generic_visit(node)
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        node.values = [self._fewer(value) if key in TRIAL_WORDS else value for key, value in zip(keys, node.values, strict=True)]
        return node

    def _fewer(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value > self.most:
            return ast.copy_location(ast.Constant(self.most), value)
        return value


class CheckoutSupport(MetaPathFinder):
    """Finds TVM's test support, `tvm.testing.*` and `tvm.topi.testing`, in the folder of its sources; nothing else of TVM comes from there."""

    def __init__(self, checkout: Path) -> None:
        self.python = checkout / "python"

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a file of the checkout; None for anything but test support."""
        if not fullname.startswith(SUPPORT):
            return None
        place = self.python.joinpath(*fullname.removeprefix(alias.OURS).split("."))
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if not file.exists():
            return None
        folders = [str(place)] if place.is_dir() else None
        return importlib.util.spec_from_file_location(fullname, file, loader=WithStandIns(fullname, str(file)), submodule_search_locations=folders)


class WithStandIns(SourceFileLoader):
    """Loads a file with stand-ins for the modules of STAND_INS that we lack. All their functions return False."""

    def get_code(self, fullname: str) -> CodeType:
        """The file's code, with indices as older versions of NumPy accepted them."""
        return compile(ast.fix_missing_locations(old_numpy.OldIndices().visit(ast.parse(self.get_data(self.path)))), self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        """Run the file."""
        vars(module)[old_numpy.INDEX] = old_numpy.index
        with stand_ins():
            super().exec_module(module)


class ToldWhenUsed(MetaPathFinder, Loader):
    """Lets tests import the missing packages of LATER, so that the other tests of a file can run. Using one of their names raises an error."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec for those packages; None for others."""
        return ModuleSpec(fullname, self, is_package=True) if fullname.removeprefix(f"{alias.OURS}tvm.") in LATER else None

    def exec_module(self, module: ModuleType) -> None:
        """Make every name of the module raise an error."""

        def tell(name: str) -> NoReturn:
            if name.startswith("_"):  # pytest looks up its own names
                raise AttributeError(name)
            raise MissingModuleError(sentence(module.__name__.removeprefix(alias.OURS), name))

        vars(module)["__getattr__"] = tell


class Nothing(ModuleType):
    """A module that test support uses only for other devices: every name in it is a function that returns False."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: False


def use_checkout(checkout: Path) -> None:
    """Make `tvm` ours, and add the names of TVM's `tvm.testing` to ours."""
    old_numpy.install()
    alias.install()
    sys.meta_path[:0] = [CheckoutSupport(checkout), ToldWhenUsed()]
    tvm.testing.__path__ = [str(checkout / "python" / "tvm" / "testing")]
    utils = importlib.import_module("ansor.compat.tvm.testing.utils")
    for name, value in vars(utils).items():
        if not name.startswith("_") and not isinstance(value, ModuleType) and not hasattr(tvm.testing, name):
            setattr(tvm.testing, name, value)


@contextmanager
def stand_ins() -> Iterator[None]:
    """Provides stand-ins for modules of other devices, and for modules that only they need, while test support is loaded."""
    module: ModuleType
    made = [short for short in STAND_INS if not _there(f"{alias.OURS}tvm.{short}")]
    for short in made:
        module = Nothing(f"{alias.OURS}tvm.{short}")
        module.__path__ = []
        sys.modules[module.__name__] = sys.modules[f"tvm.{short}"] = module
        setattr(_parent(module), short.rpartition(".")[2], module)
    try:
        yield
    finally:
        for short in reversed(made):
            module = sys.modules.pop(f"{alias.OURS}tvm.{short}")
            sys.modules.pop(f"tvm.{short}")
            delattr(_parent(module), short.rpartition(".")[2])


def _parent(module: ModuleType) -> ModuleType:
    return sys.modules[module.__name__.rpartition(".")[0]]


def _there(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def words(error: BaseException) -> str:
    """An error as one line of at most 300 characters."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def run_script(path: Path, most: int) -> tuple[str, str]:
    """The outcome and error of a script. It stops if its error says what to use instead, and fails with any other error."""
    alias.install()
    sys.argv = [str(path)]
    module = ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    code = compile(ast.fix_missing_locations(FewerTrials(most).visit(ast.parse(path.read_text()))), str(path), "exec")
    try:
        exec(code, vars(module))
    except (MissingModuleError, MissingNameError) as error:
        return STOPS, words(error)
    except Exception as error:
        traceback.print_exc()
        line = next((frame.lineno for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename == str(path)), None)
        return FAILS, f"line {line}: {words(error)}"
    return RUNS, ""


def _report(path: str, name: str, outcome: str, error: str) -> None:
    with open(path, "a") as lines:
        lines.write(json.dumps({"name": name, "outcome": outcome, "error": error}) + "\n")


# the rest of this file is a pytest plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    parser.addoption("--checkout", help="the folder of TVM's sources")
    parser.addoption("--report", help="file that gets a line for each test")
    parser.addoption("--cases", type=int, default=0, help="limit on the cases of each test function; 0: all")
    parser.addoption("--seconds", type=int, default=120, help="time limit for one test")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install our names before any test is imported."""
    use_checkout(Path(early_config.known_args_namespace.checkout))


def pytest_configure(config: pytest.Config) -> None:
    """Load TVM's own plugin."""
    config.pluginmanager.import_plugin("tvm.testing.plugin")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep at most `--cases` cases of each function, not counting skipped ones. Skip half precision, which we lack."""
    most, seen = config.getoption("--cases"), Counter[str]()
    kept = []
    for item in items:
        if any(half in str(value) for value in _parameters(item) for half in HALF):
            item.add_marker(pytest.mark.skip(reason="half precision"))
        skipped = item.get_closest_marker("skip") is not None or any(mark.args and mark.args[0] for mark in item.iter_markers("skipif"))
        function = item.nodeid.partition("[")[0]
        if skipped or not most or seen[function] < most:
            kept.append(item)
            seen[function] += not skipped
    items[:] = kept


def _parameters(item: pytest.Item) -> list[object]:
    callspec = getattr(item, "callspec", None)
    return [] if callspec is None else list(callspec.params.values())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fail tests that take too long. Seed each test, so that it draws the same random numbers in every run."""

    def late(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeoutError(f"no end after {limit} s")

    limit = item.config.getoption("--seconds")
    random.seed(0)
    numpy.random.seed(0)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(limit)
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Report a line for each test: from its call, or from a setup that did not pass."""
    outcome = yield
    result: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    if result.when == "call" or (result.when == "setup" and not result.passed):
        error = "" if call.excinfo is None else words(call.excinfo.value)
        told = call.excinfo is not None and isinstance(call.excinfo.value, MissingModuleError | MissingNameError)
        _report(item.config.getoption("--report"), item.nodeid.rpartition("::")[2], STOPS if told else result.outcome, error)


def main(file: str, report: str, most: str) -> None:
    """Run a script, and report its outcome."""
    outcome, error = run_script(Path(file), int(most))
    _report(report, "", outcome, error)
    sys.stdout.flush()
    os._exit(0)  # do not wait for threads and processes that a script started


if __name__ == "__main__":
    main(*sys.argv[1:])
