"""Libraries are linked without the compiler's runtime, unless they need it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from ansor.codegen.artifact import LIBRARY
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.compiler_runtime import link_attempts, misses_symbols
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import compile_shared, find_compiler, prepare

SHARED = ("-O3", "-shared")
PLAIN = "double doubled(double x) { return 2 * x; }\n"
QUOTIENT = """
unsigned long long quotient(unsigned long long high, unsigned long long low, unsigned long long divisor) {
  return (unsigned long long)((((unsigned __int128)high << 64) | low) / divisor);
}
"""


def test_only_libraries_of_the_embedded_compiler_are_linked_without_it() -> None:
    first, last = link_attempts("zig", SHARED)
    assert first[: len(SHARED)] == SHARED == last and "-rtlib=none" in first
    assert link_attempts("gcc", SHARED) == link_attempts("clang", SHARED) == (SHARED,)
    for flags in (("-c",), (*SHARED, "-c"), (*SHARED, "-S"), ("-static",)):
        assert link_attempts("zig", flags) == (flags,)


def test_what_a_linker_says_about_missing_symbols() -> None:
    assert misses_symbols("ld.lld: error: undefined symbol: __udivti3\n>>> referenced by source0.c")
    assert not misses_symbols("error: use of undeclared identifier 'x'")


@pytest.fixture
def runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new cache folder, in which the compiler's runtime appears once it is built."""
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.compiler
def test_a_kernel_does_not_wait_for_the_runtime(runtimes: Path, tmp_path: Path) -> None:
    compiler = find_compiler("zig")
    prepare(compiler)
    assert compile_shared(compiler, [PLAIN], tmp_path / "plain.so").ok
    made = CToolchain(compiler).build([CSource(PLAIN, "doubled", ())], LIBRARY, tmp_path / "made", timeout=60)
    assert made.said.ok, made.said.text
    assert list(runtimes.rglob("*.so")) and not list(runtimes.rglob("*compiler_rt*"))


@pytest.mark.compiler
def test_a_library_that_needs_the_runtime_has_it(runtimes: Path, tmp_path: Path) -> None:
    compiler = find_compiler("zig")
    driven = compile_shared(compiler, [QUOTIENT], tmp_path / "quotient.so", timeout=300)
    made = CToolchain(compiler).build([CSource(QUOTIENT, "quotient", ())], LIBRARY, tmp_path / "made", timeout=60)
    assert driven.ok and made.said.ok, driven.text + made.said.text
    for path in (tmp_path / "quotient.so", made.artifacts[0].path):
        quotient = ctypes.CDLL(str(path)).quotient
        quotient.argtypes, quotient.restype = [ctypes.c_uint64] * 3, ctypes.c_uint64
        assert quotient(3, 5, 7) == ((3 << 64) + 5) // 7


@pytest.mark.compiler
def test_symbols_that_are_nowhere_are_left_to_the_loader(tmp_path: Path) -> None:
    text = "int nowhere(void);\nint calls(void) { return nowhere(); }\n"
    assert compile_shared(find_compiler("zig"), [text], tmp_path / "calls.so", timeout=300).ok
    with pytest.raises(OSError, match="nowhere"):
        ctypes.CDLL(str(tmp_path / "calls.so"))
