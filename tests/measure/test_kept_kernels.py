"""A kernel that was built before is not compiled again; a damaged one is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import find_compiler
from ansor.measure import kept_kernels
from ansor.measure import kernel as kernel_module
from ansor.measure.builder import Builder
from ansor.measure.kernel import build_kernels
from ansor.support import safe_files

pytestmark = pytest.mark.compiler
TEXT = "void NAME(void *const *args, unsigned char *w, void *f, void *p) { float *a = args[0]; for (int i = 0; i < 16; ++i) a[i] = NUMBER; }\n"


def source(name: str, number: int) -> CSource:
    return CSource(TEXT.replace("NAME", name).replace("NUMBER", str(number)), name, (Argument("a", (16,), "float32", "output"),))


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels that were compiled, in a cache of their own."""
    find_compiler()
    CToolchain(find_compiler()).prepare("library")
    monkeypatch.setattr(kept_kernels, "cache_folders", lambda name: [tmp_path / name])
    monkeypatch.setattr(kept_kernels, "cache_part", lambda name: _folder(tmp_path / name))
    names: list[str] = []
    compile_ = Builder._compile

    def noting(self: Builder, group: list[CSource], *words: object) -> object:
        names.extend(one.entry for one in group)
        return compile_(self, group, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(Builder, "_compile", noting)
    return names


def _folder(path: Path) -> Path:
    path.mkdir(exist_ok=True, mode=0o700)
    return path


def values(kernels: list[object]) -> list[float]:
    return [float(np.asarray(kernel())[0]) for kernel in kernels]  # type: ignore[operator]


def test_only_what_is_new_is_compiled(built: list[str]) -> None:
    assert values([*build_kernels([source("one", 1), source("two", 2)])]) == [1, 2]
    assert values([*build_kernels([source("three", 3), source("two", 2), source("one", 1)])]) == [3, 2, 1]
    assert values([*build_kernels([source("one", 5)])]) == [5]  # another text
    assert sorted(built[:2]) == ["one", "two"] and built[2:] == ["three", "one"]  # the first two are compiled side by side


def test_a_damaged_one_is_compiled_again(built: list[str], tmp_path: Path) -> None:
    build_kernels([source("one", 1)])
    (library,) = (tmp_path / kept_kernels.FOLDER).glob("*.so")
    library.write_bytes(library.read_bytes()[:100])
    assert values([*build_kernels([source("one", 1)])]) == [1] and built == ["one", "one"]


@pytest.mark.parametrize("trouble", ["does not load", "has just been removed"])
def test_one_that_cannot_be_used_is_compiled_again(trouble: str, built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where another C library is on the same processor."""
    build_kernels([source("one", 1)])
    (library,) = (tmp_path / kept_kernels.FOLDER).glob("*.so")
    if trouble == "does not load":
        safe_files.keep(library.with_name(library.name.partition("-")[0]), ".so", b"for another system")
    else:
        monkeypatch.setattr(kernel_module, "known_kernel", lambda *words: tmp_path / "gone.so")
    assert values([*build_kernels([source("one", 1)])]) == [1] and built == ["one", "one"]


def test_of_many_the_oldest_go(built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_kernels, "MOST", 4)
    for number in range(4):
        build_kernels([source(f"k{number}", number)])
    assert len(list((tmp_path / kept_kernels.FOLDER).iterdir())) <= 6
    build_kernels([source("k3", 3)])
    assert built == ["k0", "k1", "k2", "k3"]
