"""Makes `import tvm` import `ansor.compat.tvm`, for unchanged scripts.

    python -m ansor.compat.tvm script.py

or call `ansor.compat.tvm.alias.install()` before the first import of TVM. It is also a pytest plugin: `-p ansor.compat.tvm.alias`.
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
    """Resolves `tvm` and `tvm.x.y` to the modules `ansor.compat.tvm` and `ansor.compat.tvm.x.y` themselves, not to copies."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec for TVM's names, None for all others."""
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == "tvm" else None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the new module with ours."""
        sys.modules[module.__name__] = import_module(OURS + module.__name__)


def install() -> None:
    """Make `import tvm` import this package from now on. A second call does nothing. Raises ArgumentError if TVM itself is already imported."""
    loaded = sys.modules.get("tvm")
    if loaded is not None and loaded.__name__ != f"{OURS}tvm":
        raise ArgumentError(f"asked to replace tvm with ansor.compat.tvm, but {loaded.__file__} is already imported; call install() before it")
    if not any(isinstance(finder, Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, Alias())


def pytest_load_initial_conftests() -> None:
    """pytest calls this hook before it imports any tests."""
    install()
