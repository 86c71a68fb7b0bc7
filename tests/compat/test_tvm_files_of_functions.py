"""Writing functions to files and loading them, with TVM's API."""

from __future__ import annotations

import ctypes
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ansor.compat import tvm
from ansor.compat.tvm import te
from ansor.compat.tvm.contrib import cc
from ansor.compat.tvm.function import Function
from ansor.errors import MeasureError, ToolchainError

pytestmark = pytest.mark.compiler
LOAD = """
import sys
import numpy as np
from ansor.compat import tvm
func = tvm.runtime.load_module(sys.argv[1])
c = tvm.nd.empty((8, 12))
func(tvm.nd.array(np.full((8, 12), 3, "float32")), tvm.nd.array(np.arange(12, dtype="float32")), c)
print(c.numpy().sum(), func.entry_name)
"""


@pytest.fixture(scope="module")
def scaled() -> Function:
    a, b = te.placeholder((8, 12), name="a"), te.placeholder((12,), name="b")
    c = te.compute((8, 12), lambda i, j: a[i, j] * b[j], name="c")
    return tvm.build(te.create_schedule(c.op), [a, b, c], "llvm", name="scaled")


def check(func: Function) -> None:
    a, b = np.random.default_rng(0).random((8, 12), "float32"), np.random.default_rng(1).random(12, "float32")
    c = tvm.nd.empty((8, 12))
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    tvm.testing.assert_allclose(c.numpy(), a * b)


def test_a_library_is_one_file(scaled: Function, tmp_path: Path) -> None:
    path = tmp_path / "deploy.so"
    scaled.export_library(str(path))
    assert list(tmp_path.iterdir()) == [path]
    check(tvm.runtime.load_module(str(path)))
    assert getattr(ctypes.CDLL(str(path)), scaled.kernel.code.entry) is not None
    run = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1584.0", "scaled"]


def test_objects_are_linked(scaled: Function, tmp_path: Path) -> None:
    saved, linked = tmp_path / "scaled.o", tmp_path / "scaled.so"
    assert scaled.save(str(saved)) == saved and saved.read_bytes()[:4] == b"\x7fELF"
    cc.create_shared(str(linked), [str(saved)])
    check(tvm.runtime.load_module(linked))
    assert getattr(ctypes.CDLL(str(linked)), scaled.kernel.code.entry) is not None
    with pytest.raises(ToolchainError, match="which fails"):
        cc.create_shared(tmp_path / "none.so", [tmp_path / "none.o"] if (tmp_path / "none.o").exists() else [_text(tmp_path / "bad.o")])


def _text(path: Path) -> Path:
    path.write_text("no object")
    return path


def test_text_and_folders(scaled: Function, tmp_path: Path) -> None:
    assert scaled.save(tmp_path / "scaled.c").read_text() == scaled.get_source()
    assert scaled.save(tmp_path / "scaled", "c") == tmp_path / "scaled"
    assert (tmp_path / "scaled.c").is_file()
    scaled.save(tmp_path / "folder")
    check(tvm.runtime.load_module(tmp_path / "folder"))


def test_unsupported_files_are_refused(scaled: Function, tmp_path: Path) -> None:
    for write in (scaled.save, scaled.export_library):
        with pytest.raises(MeasureError, match="give a name that ends in"):
            write(tmp_path / "scaled.ll")
    assert not list(tmp_path.iterdir())
    with pytest.raises(MeasureError, match="does not say how to call it; give a file that func.export_library wrote"):
        tvm.runtime.load_module(_text(tmp_path / "other.so"))
    with pytest.raises(MeasureError, match="cannot be read"):
        tvm.runtime.load_module(tmp_path / "missing.so")


def test_a_damaged_library_is_not_loaded(scaled: Function, tmp_path: Path) -> None:
    path = tmp_path / "deploy.so"
    scaled.export_library(path)
    content = bytearray(path.read_bytes())
    for cut in (len(content) // 2, len(content) - 40):
        (tmp_path / "cut.so").write_bytes(content[:cut])
        with pytest.raises(MeasureError):
            tvm.runtime.load_module(tmp_path / "cut.so")


def test_damaged_files_raise_a_clear_error(scaled: Function, tmp_path: Path) -> None:
    """Never a crash: only the library in the archive is loaded, after checking its digest."""
    path, rng = tmp_path / "deploy.so", random.Random(0)
    scaled.export_library(path)
    whole = path.read_bytes()
    sizes = [0, 1, len(whole) // 2, len(whole) - 1, *(rng.randrange(len(whole)) for _ in range(20))]
    places = [rng.randrange(len(whole)) for _ in range(100)]
    for content in [*(whole[:size] for size in sizes), *(whole[:k] + bytes([whole[k] ^ (1 << rng.randrange(8))]) + whole[k + 1 :] for k in places)]:
        path.write_bytes(content)
        try:
            check(tvm.runtime.load_module(path))
        except MeasureError as error:
            assert str(path) in str(error) and "\n" not in str(error)


def test_unwritable_paths(scaled: Function, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("a.so", "a.c"):
        with pytest.raises(MeasureError, match="asked to write a function to .*name another file"):
            scaled.save(tmp_path / "file" / name)
