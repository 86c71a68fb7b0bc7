"""Kernels as single files: a shared library or an object file, followed by an archive that says how to call it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansor.codegen.toolchain import compile_shared, find_compiler
from ansor.errors import MeasureError, ToolchainError
from ansor.measure.kernel import Kernel
from ansor.measure.saved_kernel import archive, archived
from ansor.support.safe_files import write_whole

SECONDS = 120.0
LIBRARY, OBJECT, TEXT = (".so", ".dylib", ".dll"), (".o", ".obj"), (".c", ".cc")


def export_library(kernel: Kernel, path: Path) -> None:
    """Write a shared library that `load_kernel` loads; any program can load it for its C function."""
    files = kernel.files()
    _write(path, files["kernel.so"] + archive(files), 0o755)


def save(kernel: Kernel, path: Path, mcpu: str) -> None:
    """Write a kernel in the form its path's suffix names: C text, object file or shared library; without a suffix, a folder for `Kernel.load`.

    Raises MeasureError for another suffix or a file that cannot be written, ToolchainError with the compiler's text.
    """
    if path.suffix in TEXT:
        _write(path, kernel.source.encode())
    elif path.suffix in LIBRARY:
        export_library(kernel, path)
    elif path.suffix in OBJECT:
        _compile([kernel.source], path, mcpu, ("-c",))
        _write(path, path.read_bytes() + archive(kernel.files()))
    elif path.suffix and not path.is_dir():
        raise MeasureError(f"asked to save a function as {path.name}; give a name that ends in .c, .o or .so, or the name of a folder")
    else:
        kernel.save(path)


def create_shared(path: Path, objects: Sequence[Path], options: Sequence[str] = ()) -> None:
    """Link object files. If one is a saved kernel, `load_kernel` loads the result. Raises ToolchainError with the compiler's text."""
    kernels = [found for found in map(archived, objects) if found is not None]
    _compile(list(objects), path, "", options)
    if len(kernels) == 1:
        _write(path, path.read_bytes() + archive(kernels[0]), 0o755)


def load_kernel(path: Path) -> Kernel:
    """Load the kernel in a file of `export_library` or a folder of `save`; this runs code. Raises MeasureError if it is neither, or damaged."""
    if path.is_dir():
        return Kernel.load(path)
    files = archived(path)
    if files is None:
        raise MeasureError(f"asked to load {path}, which is damaged or does not say how to call it; give a file that func.export_library wrote")
    return Kernel.of_files(files, str(path))


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    try:
        write_whole(path, content, mode)
    except OSError as error:
        raise MeasureError(f"asked to write a function to {path}, which fails ({error.strerror or error}); name another file") from error


def _compile(sources: Sequence[Path | str], path: Path, mcpu: str, flags: Sequence[str]) -> None:
    compiler = find_compiler()
    found = compile_shared(compiler, sources, path, mcpu=mcpu, flags=flags, timeout=SECONDS)
    if not found.ok:
        raise ToolchainError(f"asked {compiler} for {path.name}, which fails: {found.text:.2000}")
