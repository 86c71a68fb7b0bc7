"""`tvm.contrib.cc`: links object files into shared libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansor.codegen.toolchain import find_compiler
from ansor.compat.tvm.missing import of_contrib as __getattr__  # noqa: F401  # missing names raise
from ansor.measure import kernel_files


def create_shared(output: str | Path, objects: str | Sequence[str | Path], options: Sequence[str] | None = None, cc: str | None = None) -> None:
    """Link object files into a shared library. `tvm.runtime.load_module` loads it if `Function.save` wrote them. `cc` is ignored: our compiler links.

    Raises ToolchainError with the compiler's output.
    """
    given = [objects] if isinstance(objects, str) else list(objects)
    kernel_files.create_shared(Path(output), [Path(one) for one in given], options or ())


def get_cc() -> str:
    """The command of the compiler in use."""
    return " ".join(find_compiler().command)
