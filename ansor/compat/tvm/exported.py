"""Functions as files: a shared library, or an object file, behind which an archive says how it is called."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ansor.codegen.toolchain import compile_shared, find_compiler
from ansor.errors import MeasureError, ToolchainError
from ansor.measure.kernel import Kernel

SECONDS = 120.0
LIBRARY, OBJECT, TEXT = (".so", ".dylib", ".dll"), (".o", ".obj"), (".c", ".cc")


def export_library(kernel: Kernel, path: Path) -> None:
    """Write a shared library that `load_module` loads, and that any program can load for the C function in it."""
    files = _files(kernel)
    path.write_bytes(files["kernel.so"] + _archive(files))


def save(kernel: Kernel, path: Path, mcpu: str) -> None:
    """Write a function by what its path ends in: the C text, an object file, a shared library; a folder for `Kernel.load` where it has no ending.

    Raises MeasureError for another ending, ToolchainError with the compiler's text.
    """
    if path.suffix in TEXT:
        path.write_text(kernel.source)
    elif path.suffix in LIBRARY:
        export_library(kernel, path)
    elif path.suffix in OBJECT:
        _compile([kernel.source], path, mcpu, ("-c",))
        path.write_bytes(path.read_bytes() + _archive(_files(kernel)))
    elif path.suffix and not path.is_dir():
        raise MeasureError(f"asked to save a function as {path.name}; give a name that ends in .c, .o or .so, or the name of a folder")
    else:
        kernel.save(path)


def create_shared(path: Path, objects: Sequence[Path], options: Sequence[str] = ()) -> None:
    """Link object files. Of a function saved as one, `load_module` loads the result. Raises ToolchainError with the compiler's text."""
    archives = [found for found in map(_archive_in, objects) if found is not None]
    _compile(list(objects), path, "", options)
    if len(archives) == 1:
        path.write_bytes(path.read_bytes() + archives[0])


def load_kernel(path: Path) -> Kernel:
    """The kernel of a file of `export_library`, or of a folder of `save`; it is code, and is run. Raises MeasureError when it is neither, or damaged."""
    if path.is_dir():
        return Kernel.load(path)
    archive = _archive_in(path)
    if archive is None:
        raise MeasureError(f"asked to load {path}, which does not say how it is called; give a file that func.export_library wrote")
    with tempfile.TemporaryDirectory(prefix="ansor-load-") as folder:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            for name in files.namelist():
                (Path(folder) / Path(name).name).write_bytes(files.read(name))
        return Kernel.load(folder)


def _files(kernel: Kernel) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="ansor-save-") as folder:
        kernel.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}


def _archive(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


def _archive_in(path: Path) -> bytes | None:
    """The archive at the end of a file; None when there is none. Raises MeasureError for a file that cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _archive({name: archive.read(name) for name in archive.namelist()})
    except zipfile.BadZipFile:
        return None
    except OSError as error:
        raise MeasureError(f"asked for the function in {path}, which cannot be read: {error}") from error


def _compile(sources: Sequence[Path | str], path: Path, mcpu: str, flags: Sequence[str]) -> None:
    compiler = find_compiler()
    found = compile_shared(compiler, sources, path, mcpu=mcpu, flags=flags, timeout=SECONDS)
    if not found.ok:
        raise ToolchainError(f"asked {compiler} for {path.name}, which fails: {found.text:.2000}")
