"""Kernels as C alone: built by gcc and clang without a warning and under their sanitizers, right by their own self-test."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import ansor
from ansor import te
from ansor.codegen.c_arrays import defined
from ansor.errors import ArgumentError, ArgumentTypeError, MeasureError
from ansor.measure.kernel import Kernel
from ansor.te.tensor import Tensor
from tests.c_compilers import STRICT, need_compiler

pytestmark = pytest.mark.compiler
Array = NDArray[np.generic]
FLAGS = ("-O2", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-march=native", "-pedantic", *STRICT)
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
RANDOM = np.random.default_rng(0)
FLOATS, BYTES = RANDOM.standard_normal((32, 64)).astype(np.float32), RANDOM.integers(-128, 128, (32, 64)).astype(np.int8)


def dense(dtype: str = "float32", sums: str = "float32") -> list[Tensor]:
    """Large enough for two threads to pay."""
    x, w, k = te.placeholder((1536, 64), dtype, name="x"), te.placeholder((32, 64), dtype, name="w", constant=True), te.reduce_axis((0, 64), name="k")
    return [x, w, te.compute((1536, 32), lambda i, j: te.sum(te.cast(sums, x[i, k]) * te.cast(sums, w[j, k]), axis=k), name="dense")]


def kernel_of(tensors: list[Tensor], threads: int = 1, constants: Mapping[str, Array] | None = None) -> Kernel:
    found = ansor.auto_schedule(tensors, target=f"cpu -threads={threads}", progress=False)
    assert isinstance(found, Kernel)
    found.bind_constants(constants or {})
    return found


def built(folder: Path, *command: str) -> Path:
    objects = []
    for source in sorted(folder.glob("*.c")):
        objects.append(str(source.with_suffix(".o")))
        standard = ["-std=c11", "-pthread"] if source.name == "thread_pool.c" else ["-std=c99"]
        subprocess.run([*command, *standard, *FLAGS, "-c", str(source), "-o", objects[-1]], check=True)
    subprocess.run([*command, *objects, "-o", str(folder / "test"), "-lm", "-pthread"], check=True)
    return folder / "test"


def said(test: Path) -> tuple[int, list[str]]:
    done = subprocess.run([test, test.parent], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_it_builds_without_a_warning_and_proves_itself(dtype: str, threads: int, compiler: str, tmp_path: Path) -> None:
    tensors, weight = (dense(), FLOATS) if dtype == "float32" else (dense("int8", "int32"), BYTES)
    folder = kernel_of(tensors, threads, {"w": weight}).export(tmp_path / "out")
    right = ["dense, 1 thread: right", "dense, 2 threads: right"][:threads]
    assert said(built(folder, need_compiler(compiler))) == (0, right)
    assert said(built(folder, need_compiler(compiler), *SANITIZED)) == (0, right)
    recorded = bytearray((folder / "selftest.bin").read_bytes())
    recorded[-1 if dtype == "float32" else -4] ^= 0x40
    (folder / "selftest.bin").write_bytes(recorded)
    assert said(folder / "test") == (1, [line.replace("right", "wrong, 1 outputs") for line in right])
    (folder / "selftest.bin").write_bytes(recorded[:-1])
    assert said(folder / "test")[0] == 2


def test_what_the_files_say(tmp_path: Path) -> None:
    folder = kernel_of(dense(), 2, {"w": FLOATS}).export(tmp_path / "out")
    shared = {"CMakeLists.txt", "README.md", "checks.h", "selftest.c", "selftest.h", "selftest.bin", "thread_pool.c", "thread_pool.h"}
    assert {path.name for path in folder.iterdir()} == {"dense.c", "dense.h", "dense_constants.c", *shared}
    header = (folder / "dense.h").read_text()
    assert " *   input    x: float32[1536, 64]\n *   output   dense: float32[1536, 32]\n *   built in w: float32[32, 64]\n" in header
    assert "#define DENSE_ALIGNMENT 64\n" in header and "#define DENSE_THREADS 2\n" in header and "It was made for 2 threads" in header
    assert "void dense_run(const float *x, float *dense, unsigned char *workspace,\n    void (*parallel_for)(void *pool, " in header
    assert "static void dense(void *const *args" in (folder / "dense.c").read_text()
    assert re.findall(r"^const float dense_constant_w\[\d+\] __attribute__", (folder / "dense_constants.c").read_text(), re.MULTILINE)
    readme = (folder / "README.md").read_text()
    assert "    cc -O3 -std=c99 " in readme and "a thousandth" in readme and "`-march=native` means the processor of the compiling machine" in readme
    assert "the caller's thread: parallel_for and pool are not used" in (kernel_of(dense(), 1, {"w": FLOATS}).export(tmp_path / "one") / "dense.h").read_text()


@pytest.mark.parametrize("line", [1, 2, 4])
def test_the_commands_in_the_readme_work(line: int, tmp_path: Path) -> None:
    """line: how many commands there are: without and with threads, and CMake's three as one."""
    folder = kernel_of(dense(), 1 if line == 1 else 2, {"w": FLOATS}).export(tmp_path / "out")
    need_compiler("gcc")
    if line == 4 and shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    text = (folder / "README.md").read_text()
    commands = re.findall(r"^    (cc .*)$", text, re.MULTILINE) if line < 4 else re.findall(r"`(cmake -B .*?)`", text)
    done = subprocess.run(" && ".join(commands), shell=True, cwd=folder, capture_output=True, text=True)
    assert len(commands) == {1: 2, 2: 3, 4: 1}[line] and done.returncode == 0 and "warning" not in done.stdout + done.stderr, done.stdout + done.stderr
    assert line == 4 or done.stdout.endswith("thread: right\n" if line == 1 else "2 threads: right\n")


def test_two_kernels_in_one_program(tmp_path: Path) -> None:
    """With another name, the same declaration may be there twice. Headers are also for C++."""
    x = te.placeholder((8,), name="new")
    plain = kernel_of([x, te.compute((8,), lambda i: x[i] + 1, name="selftest")]).export(tmp_path / "a")
    other = kernel_of(dense(), 1, {"w": FLOATS}).export(tmp_path / "b", name="second")
    main = '#include "selftest_kernel.h"\n#include "second.h"\nint main(void) { return SECOND_THREADS + SELFTEST_KERNEL_THREADS - 2; }\n'
    (tmp_path / "main.c").write_text(main)
    sources = [tmp_path / "main.c", plain / "selftest_kernel.c", other / "second.c", other / "second_constants.c"]
    command = [need_compiler("gcc"), "-std=c99", *FLAGS, f"-I{plain}", f"-I{other}", *map(str, sources), "-o", str(tmp_path / "main"), "-lm"]
    subprocess.run(command, check=True)
    subprocess.run([tmp_path / "main"], check=True)
    assert "(const float *new_, float *selftest," in (plain / "selftest_kernel.h").read_text()
    subprocess.run([need_compiler("clang"), "-x", "c++", *STRICT, "-fsyntax-only", f"-I{plain}", f"-I{other}", str(tmp_path / "main.c")], check=True)
    with pytest.raises(ArgumentError, match="asked to export a kernel as 'selftest', but the name is taken by .*; give one such as 'dense'"):
        kernel_of(dense(), 1, {"w": FLOATS}).export(tmp_path / "c", name="selftest")


def test_inputs_of_the_self_test(tmp_path: Path) -> None:
    """Indices are in range, in saved kernels too; roots get positive numbers; the caller may give others."""
    table, index = te.placeholder((5, 8), name="table", constant=True), te.placeholder((6,), "int64", name="rows_of")
    kernel = kernel_of([table, index, te.compute((6, 8), lambda i, j: table[index[i], j], name="rows")], 1, {"table": np.full((5, 8), np.inf, np.float32)})
    for number, one in enumerate((kernel, Kernel.load(kernel.save(tmp_path / "saved")))):
        folder = one.export(tmp_path / str(number))
        assert np.isin(np.fromfile(folder / "selftest.bin", np.int64, 6), range(5)).all() and said(built(folder, need_compiler("gcc")))[0] == 0
    given = np.array([4, 3, 2, 1, 0, 0])
    for folder in (kernel.export(tmp_path / "a", given), kernel.export(tmp_path / "b", [given]), kernel.export(tmp_path / "c", {"rows_of": given})):
        assert np.array_equal(np.fromfile(folder / "selftest.bin", np.int64, 6), given)
    with pytest.raises(ArgumentTypeError, match="takes 1 argument"):
        kernel.export(tmp_path / "wrong", [given, given])
    x = te.placeholder((64,), name="x")
    folder = kernel_of([x, te.compute((64,), lambda i: te.sqrt(x[i]) + te.log(x[i]), name="root")]).export(tmp_path / "root")
    assert np.isfinite(np.fromfile(folder / "selftest.bin", np.float32)).all() and said(built(folder, need_compiler("gcc")))[0] == 0


def test_floats_of_two_bytes_may_differ_by_a_step(tmp_path: Path) -> None:
    x = te.placeholder((4, 64), "bfloat16", name="x")
    folder = kernel_of([x, te.compute((4, 64), lambda i, j: te.cast("bfloat16", te.exp(te.cast("float32", x[i, j]))), name="y")]).export(tmp_path / "out")
    assert "const unsigned short *x" in (folder / "y.h").read_text() and "bfloat16[4, 64] (the bits of each number)" in (folder / "y.h").read_text()
    test = built(folder, need_compiler("gcc"))
    recorded = np.fromfile(folder / "selftest.bin", np.uint16)
    for steps, ended in ((0, 0), (1, 0), (16, 1)):
        (folder / "selftest.bin").write_bytes((recorded + np.uint16(steps) * (np.arange(len(recorded)) == 256)).astype(np.uint16).tobytes())
        assert said(test)[0] == ended


def test_nan_is_wrong_if_rounding_follows(tmp_path: Path) -> None:
    x = te.placeholder((16,), name="x")
    folder = kernel_of([x, te.compute((16,), lambda i: x[i] + 1, name="y")]).export(tmp_path / "out")
    test, recorded = built(folder, need_compiler("gcc")), np.fromfile(folder / "selftest.bin", np.float32)
    for first, ended in ((recorded[16], 0), (np.float32(np.nan), 1)):
        (folder / "selftest.bin").write_bytes(np.array([*recorded[:16], first, *np.nextafter(recorded[17:], np.float32(9))], np.float32).tobytes())
        assert said(test)[0] == ended


def test_constants_without_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="whose C holds its constants, but no values of w are bound; call bind_constants first"):
        kernel_of(dense()).export(tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasureError, match="asked to export a kernel to .* which cannot be written to"):
        kernel_of(dense(), 1, {"w": FLOATS}).export(tmp_path / "file")
    assert not (tmp_path / "out").exists()


def test_literals_have_the_value_of_their_element(tmp_path: Path) -> None:
    arrays: list[Array] = [
        np.array([0.1, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 2.0], np.float32), np.array([0.1, 5e-324, 1.7e308]), np.array([True, False]),
        np.array([-(2**31), 2**31 - 1], np.int32), np.array([-(2**63), 2**63 - 1]), np.array([-128, 127], np.int8), np.array([255], np.uint8),
        np.array([0.1, -2], np.float16), np.array([0.1, -2], ml_dtypes.bfloat16),
    ]  # fmt: skip
    lines = [line for number, array in enumerate(arrays) for line in defined(f"a{number}", array, 64)]
    writes = "".join(f"fwrite(a{number}, 1, sizeof a{number}, stdout);" for number in range(len(arrays)))
    (tmp_path / "a.c").write_text("\n".join(["#include <math.h>", "#include <stdio.h>", *lines, f"int main(void) {{ {writes} return 0; }}", ""]))
    subprocess.run([need_compiler("gcc"), "-std=c99", "-pedantic", *STRICT, str(tmp_path / "a.c"), "-o", str(tmp_path / "a")], check=True)
    found = subprocess.run([tmp_path / "a"], capture_output=True, check=True).stdout
    assert found == b"".join(array.tobytes() for array in arrays)
