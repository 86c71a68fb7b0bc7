import ctypes
import math
import os
import threading
import time
from pathlib import Path

import pytest

from ansor.codegen import toolchain
from ansor.codegen.toolchain import Compiler, compile_shared, find_compiler, prepare
from ansor.errors import ToolchainError

pytestmark = pytest.mark.compiler

GOOD = "int answer(void) { return 42; }"


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    compiler = find_compiler()
    prepare(compiler)
    return compiler


def test_text_and_files_become_one_library(compiler: Compiler, tmp_path: Path) -> None:
    (tmp_path / "more.c").write_text("int more(void) { return 1; }")
    compiled = compile_shared(compiler, [GOOD, tmp_path / "more.c"], tmp_path / "both.so")
    assert compiled.ok, compiled.text
    library = ctypes.CDLL(str(tmp_path / "both.so"))
    assert library.answer() + library.more() == 43
    assert sorted(p.name for p in tmp_path.iterdir()) == ["both.so", "more.c"]


def test_nan_infinity_and_wrapping_survive(compiler: Compiler, tmp_path: Path) -> None:
    text = "double f(double x) { return (x - x) / (x - x); } double g(double x) { return x * 1e308; }"
    assert compile_shared(compiler, [text], tmp_path / "f.so").ok
    library = ctypes.CDLL(str(tmp_path / "f.so"))
    for name in "fg":
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    assert math.isnan(library.f(1.0)) and math.isinf(library.g(1e10))


def test_errors_carry_the_tools_text(compiler: Compiler, tmp_path: Path) -> None:
    compiled = compile_shared(compiler, ["int f(void) { return missing; }"], tmp_path / "f.so")
    assert compiled.kind == "compile" and "missing" in compiled.text and not list(tmp_path.iterdir())


def test_timeout_and_cancel_are_values(compiler: Compiler, tmp_path: Path) -> None:
    assert compile_shared(compiler, [GOOD], tmp_path / "f.so", timeout=0.0001).kind == "compile_timeout"
    cancelled = threading.Event()
    cancelled.set()
    assert compile_shared(compiler, [GOOD], tmp_path / "f.so", cancelled=cancelled).kind == "compile_timeout"


def test_unknown_compilers_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "no-compiler"
    script.write_text("#!/bin/sh\nprintf '%s' hello\n")
    script.chmod(0o755)
    with pytest.raises(ToolchainError, match="no program 'no-such-compiler'"):
        find_compiler("no-such-compiler -m64")
    with pytest.raises(ToolchainError, match="not a C compiler that ansor can use"):
        find_compiler(str(script))


def test_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ToolchainError, match="no-such-compiler"):
        find_compiler()
    assert find_compiler("zig").kind == "zig"


def test_flags_name_the_processor() -> None:
    gcc = Compiler("gcc", ("gcc",), "gcc 12")
    assert "-march=znver3" in gcc.flags("znver3") and not [f for f in gcc.flags("") if f.startswith("-march")]
    assert "-mcpu=native" in Compiler("zig", ("zig", "cc"), "zig").flags()
    assert "-ffast-math" not in gcc.flags()


@pytest.mark.parametrize("hangs", ["sleep 300", "sleep 300 & wait", "setsid sleep 5 & sleep 300"])
def test_a_compiler_that_hangs_in_a_child_of_its_own_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: str) -> None:
    script = tmp_path / "cc"
    script.write_text(f"#!/bin/sh\n{hangs}\n")
    script.chmod(0o755)
    monkeypatch.setattr(toolchain, "ASK_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(ToolchainError, match=r"hangs: no answer from .* in 0.3 s; name another with --cc or \$CC"):
        find_compiler(str(script))
    assert time.monotonic() - started < 4, "nobody waits for a pipe that a child holds"


def test_what_is_kept_for_this_processor_is_not_taken_on_another_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "processor\t: 0\nmodel name\t: EPYC\nmodel\t\t: 17\ncpu MHz\t\t: 2400.1\nflags\t\t: avx avx2 avx512f\n\nprocessor\t: 1\nflags\t\t: avx\n"

    def kind(text: str) -> str:
        monkeypatch.setattr(Path, "read_text", lambda self, **options: text)
        return toolchain.processor_kind.__wrapped__()

    assert kind(text) == kind(text.replace("2400.1", "1200.0")) == kind(text.replace("processor\t: 0", "processor\t: 7"))
    assert len({kind(text), kind(text.replace(" avx512f", "")), kind(text.replace("17", "1"))}) == 3
    here = kind(text)
    monkeypatch.setattr(toolchain, "_c_library", lambda: "glibc 2.17")  # what is linked here may ask for newer functions than that one has
    assert kind(text) != here


def test_the_name_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert toolchain._c_library() in ("", os.confstr("CS_GNU_LIBC_VERSION"))
    monkeypatch.delattr(os, "confstr")
    assert toolchain._c_library() == ""
