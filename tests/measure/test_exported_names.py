"""Names that a program, C++ or CMake already uses are not those of an exported kernel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import ansor
from ansor import te
from ansor.errors import ArgumentError
from ansor.measure.exported_names import kernel_name, parameter_name
from tests.c_compilers import need_compiler


@pytest.mark.parametrize(("entry", "name"), [
    ("dense", "dense"), ("dense__1_", "dense_1"), ("math", "math_kernel"), ("test", "test_kernel"), ("checks", "checks_kernel"), ("m", "m_kernel"),
])  # fmt: skip
def test_the_usual_name(entry: str, name: str) -> None:
    assert kernel_name("", entry) == name == kernel_name(name, entry)


C, TAKEN = "cannot be the kernel's name in C", "is taken by a header, a CMake target or another file"


@pytest.mark.parametrize(("asked", "why"), [
    ("two words", C), ("float", C), ("selftest", TAKEN), ("string", TAKEN), ("install", TAKEN), ("1st", C), ("größe", C), ("conv-clip", C),
])  # fmt: skip
def test_other_names_are_refused(asked: str, why: str) -> None:
    with pytest.raises(ArgumentError, match=f"asked to export a kernel as '{asked}', but the name {why}; give one such as 'test_kernel'"):
        kernel_name(asked, "test")


def test_parameters_are_no_words_of_cpp_or_macros() -> None:
    assert [parameter_name(name) for name in ("x", "new", "EOF", "I", "pool")] == ["x", "new_", "EOF_", "I_", "pool_"]


@pytest.mark.compiler
@pytest.mark.parametrize("name", ["math", "test"])
def test_they_build_with_cmake(name: str, tmp_path: Path) -> None:
    need_compiler("gcc")
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    x = te.placeholder((8,), name="NULL")
    kernel = ansor.auto_schedule([x, te.compute((8,), lambda i: x[i] + 1, name=name)], target="cpu -threads=1", progress=False)
    assert isinstance(kernel, ansor.Kernel)
    kernel.export(tmp_path)
    done = subprocess.run("cmake -B build && cmake --build build && ctest --test-dir build", shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "warning" not in done.stdout + done.stderr, done.stdout + done.stderr
