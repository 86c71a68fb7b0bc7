"""`import tvm` gives `ansor.compat.tvm`: for scripts whose imports should not be touched.

    python -m ansor.compat.tvm script.py

or, before the first import of TVM, `ansor.compat.tvm.alias.install()`. As a plugin of pytest (`-p ansor.compat.tvm.alias`) it does the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from ansor.errors import ArgumentError

OURS = "ansor.compat."


class Alias(MetaPathFinder, Loader):
    """Finds `tvm` and `tvm.x.y`: the modules `ansor.compat.tvm` and `ansor.compat.tvm.x.y` themselves, not copies of them."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec for TVM's names, None for others."""
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == "tvm" else None

    def exec_module(self, module: ModuleType) -> None:
        """Put our module in the place of the new one."""
        sys.modules[module.__name__] = import_module(OURS + module.__name__)


def install() -> None:
    """From now on, `tvm` is ours. A second call does nothing. Raises ArgumentError when TVM itself is imported already."""
    loaded = sys.modules.get("tvm")
    if loaded is not None and loaded.__name__ != f"{OURS}tvm":
        raise ArgumentError(f"asked to put ansor.compat.tvm in the place of tvm, but {loaded.__file__} is imported already; call install() before that")
    if not any(isinstance(finder, Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, Alias())


def pytest_load_initial_conftests() -> None:
    """What pytest calls of a plugin, before it imports anything of the tests."""
    install()
