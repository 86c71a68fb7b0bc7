"""Kernels of bfloat16: conversions in every width, products by the instruction and by plain arithmetic, and what callers hand over."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import ansor
from ansor import te
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.dialect import PRELUDE, Helpers
from ansor.codegen.tensorized import dot_function
from ansor.codegen.toolchain import compile_shared, find_compiler
from ansor.errors import MeasureError
from ansor.ir.evaluate import evaluate
from ansor.ir.intrinsics import intrinsic_named
from ansor.measure.kernel import Kernel, build_kernels
from ansor.support.bfloat16 import array_of
from ansor.targets.base import parse_target
from ansor.te import nn
from ansor.te.tensor import Tensor
from tests.c_compilers import STRICT, complaints, need_compiler
from tests.declarations import seeded_draw
from tests.programs import Bench, Program, case_of, interpreted, sketches

pytestmark = pytest.mark.compiler
BF = ml_dtypes.bfloat16
N = 37  # whole vectors and a tail
NAME = "avx512_dpbf16"
HERE, ANYWHERE = "cpu -threads=1", "cpu -threads=1 -mattr=-avx512bf16"
COMPILERS = [name for name in ("zig", "gcc") if name == "zig" or shutil.which(name)]


def special(count: int) -> NDArray[np.float32]:
    """Floats of all sizes, among them halves between two neighbours in bfloat16, infinities and numbers near the ends of the range."""
    bits = np.random.default_rng(0).integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    bits[::3] = bits[::3] & 0xFFFF0000 | 0x8000
    found = bits.view(np.float32)
    found[:6] = [0.0, -0.0, np.inf, -np.inf, 3.4e38, 1e-40]
    return found


@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_conversions_are_exact_one_way_and_rounded_once_the_other(compiler: str, lanes: int, tmp_path: Path) -> None:
    helpers = Helpers()
    to, back = helpers.rounded(lanes), helpers.widened(lanes)
    narrow, wide = (helpers.vector(dtype, lanes) if lanes > 1 else plain for dtype, plain in (("bfloat16", "unsigned short"), ("float32", "float")))
    loop = f"for (long i = 0; i < n; i += {lanes})"
    text = (f"void narrow(unsigned short *y, const float *x, long n) {{ {loop} *({narrow} *)&y[i] = {to}(*(const {wide} *)&x[i]); }}\n"
            f"void widen(float *y, const unsigned short *x, long n) {{ {loop} *({wide} *)&y[i] = {back}(*(const {narrow} *)&x[i]); }}")
    library = tmp_path / "run.so"
    compiled = compile_shared(find_compiler(compiler), ["\n".join([PRELUDE, helpers.text(), text])], library)
    assert compiled.ok, compiled.text
    run, count = ctypes.CDLL(str(library)), 1 << 16
    given = special(count)
    found = np.zeros(count, np.uint16)
    run.narrow(ctypes.c_void_p(found.ctypes.data), ctypes.c_void_p(given.ctypes.data), ctypes.c_long(count))
    with np.errstate(invalid="ignore", over="ignore"):
        expected = given.astype(BF)
    number = ~np.isnan(given)
    assert np.array_equal(found[number], expected.view(np.uint16)[number])
    assert np.isnan(found.view(BF)[~number].astype(np.float32)).all() and (~number).any()
    every, wider = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16), np.zeros(1 << 16, np.uint32)
    run.widen(ctypes.c_void_p(wider.ctypes.data), ctypes.c_void_p(every.ctypes.data), ctypes.c_long(1 << 16))
    assert np.array_equal(wider, every.astype(np.uint32) << 16)


@pytest.mark.parametrize("plain", [False, True], ids=["as the processor runs it", "plain"])
def test_the_instruction_is_its_declaration(plain: bool, bench: Bench, tmp_path: Path) -> None:
    """Two products are added to a float32, each step rounded or not; where this processor does not have it, by plain arithmetic."""
    intrinsic = intrinsic_named(NAME)
    assert intrinsic is not None
    helpers, entries = Helpers(), []
    for lanes in intrinsic.lanes:
        bits, wide, name = helpers.vector("int32", lanes), helpers.vector("float32", lanes), dot_function(helpers, intrinsic, lanes)
        entries.append(f"void run{lanes}(float *acc, const int *a, const int *b) {{ *({wide} *)acc = {name}(*({wide} *)acc, *({bits} *)a, *({bits} *)b); }}")
    library = tmp_path / "run.so"
    prelude = [PRELUDE, "#undef __AVX512BF16__"] if plain else [PRELUDE]
    compiled = compile_shared(bench.compiler, ["\n".join([*prelude, helpers.text(), *entries])], library)
    assert compiled.ok, compiled.text
    run, rng = ctypes.CDLL(str(library)), np.random.default_rng(1)
    for lanes in intrinsic.lanes:
        a, b = (rng.standard_normal((lanes, 2)).astype(BF) for _ in range(2))
        acc = rng.standard_normal(lanes).astype(np.float32)
        exact = acc + (a.astype(np.float64) * b.astype(np.float64)).sum(axis=1)
        getattr(run, f"run{lanes}")(*(ctypes.c_void_p(x.ctypes.data) for x in (acc, a, b)))
        assert np.allclose(acc, exact, rtol=1e-6, atol=1e-6), lanes


def dense(rows: int, inner: int, columns: int, constant: bool = True) -> list[Tensor]:
    x, w = te.placeholder((rows, inner), "bfloat16", name="x"), te.placeholder((columns, inner), "bfloat16", name="w", constant=constant)
    bias = te.placeholder((columns,), "bfloat16", name="bias", constant=True)
    real = nn.bias_add(nn.dense(x, w, name="products"), bias, -1, name="biased")
    return [x, w, bias, nn.cast(real, "bfloat16", name="y")]


def drawn(tensors: list[Tensor]) -> list[NDArray[np.generic]]:
    rng = np.random.default_rng(2)
    return [rng.uniform(-1, 1, tensor.shape).astype(tensor.dtype) for tensor in tensors[:-1]]


@pytest.mark.parametrize("target", [HERE, ANYWHERE, "cpu -mcpu=x86-64-v3 -threads=1"])
@pytest.mark.parametrize("shape", [(16, 64, 48), (5, 24, 20), (1, 128, 64), (7, 9, 11)])
def test_products_are_those_of_exact_numbers_but_for_float32_and_one_rounding(shape: tuple[int, int, int], target: str) -> None:
    tensors = dense(*shape)
    given = drawn(tensors)
    try:
        kernel = ansor.auto_schedule(tensors, target=target, trials=0)
    except MeasureError as error:
        pytest.skip(str(error))
    found = np.asarray(kernel(*given)).astype(np.float64)
    (exact,) = evaluate(tensors[-1:], dict(zip(["x", "w", "bias"], given, strict=True)), "float64")
    assert (np.abs(found - exact) <= np.abs(exact) / 256 + 1e-5 * np.abs(exact).max()).all()


@pytest.mark.parametrize("constant", [True, False])
def test_the_untuned_pick_uses_the_instruction(constant: bool) -> None:
    features = "+avx512bf16,+avx512vl,-amx-bf16"
    picked = ansor.auto_schedule(dense(64, 128, 96, constant), target=f"cpu -threads=1 -vector-bytes=64 -mattr={features}", trials=0)
    assert f"ANSOR_{NAME}_16(acc" in picked.source
    task = ansor.SearchTask(dense, (64, 128, 96, constant), "cpu -mcpu=cascadelake -threads=1")
    assert not any(hasattr(step, "intrinsic") for sketch in ansor.SketchPolicy(task).generate_sketches() for step in sketch.steps)


def test_the_untuned_pick_uses_matrix_registers() -> None:
    """Plain C if this machine has none."""
    tensors = dense(64, 128, 96)
    kernel = ansor.auto_schedule(tensors, target="cpu -threads=1 -vector-bytes=64 -num-registers=32 -mattr=+amx-bf16", trials=0)
    assert "ANSOR_amx_dpbf16_dot(0, 4, 6);" in kernel.source
    given = drawn(tensors)
    (exact,) = evaluate(tensors[-1:], dict(zip(["x", "w", "bias"], given, strict=True)), "float64")
    assert (np.abs(np.asarray(kernel(*given)).astype(np.float64) - exact) <= np.abs(exact) / 256 + 1e-5 * np.abs(exact).max()).all()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_any_processor_has_them(compiler: str) -> None:
    """The C of a program for one processor, built for another: its instruction is plain arithmetic there."""
    tensors = dense(8, 32, 48)
    kernel = ansor.auto_schedule(tensors, target="cpu -threads=1 -mattr=+avx512bf16", trials=0)
    assert isinstance(kernel, Kernel)
    (other,) = build_kernels([kernel.code], CToolchain(find_compiler(compiler), ""))
    given = drawn(tensors)
    found, wanted = (np.asarray(one(*given)).astype(np.float32) for one in (other, kernel))
    assert np.allclose(found, wanted, rtol=2**-6, atol=2**-6)


def test_a_search_verifies_its_programs(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    tensors = dense(24, 40, 56, constant=False)
    kernel = ansor.auto_schedule(tensors, trials=8, records=records, target=HERE)
    text = records.read_text()
    assert '"wrong_answer"' not in text and kernel.latency_s is not None
    given = drawn(tensors)
    (exact,) = evaluate(tensors[-1:], dict(zip(["x", "w", "bias"], given, strict=True)), "float64")
    assert np.allclose(np.asarray(kernel(*given)).astype(np.float64), exact, rtol=2**-7, atol=1e-4)


def test_elementwise_work_and_reductions() -> None:
    x = te.placeholder((6, N), "bfloat16", name="x")
    out = nn.cast(nn.softmax(nn.relu(x)), "bfloat16", name="y")
    kernel = ansor.auto_schedule([x, out], trials=0, target=HERE)
    a = np.random.default_rng(3).standard_normal((6, N)).astype(BF)
    (exact,) = evaluate([out], {"x": a}, "float64")
    found = np.asarray(kernel(a))
    assert found.dtype == BF and np.allclose(found.astype(np.float64), exact, rtol=2**-8, atol=1e-6)


def test_arrays_and_tensors_are_taken_as_they_are() -> None:
    x = te.placeholder((64, 32), "bfloat16", name="x")
    kernel = ansor.auto_schedule([x, te.compute((64, 32), lambda i, j: (x[i, j] * 2 + 1).astype("bfloat16"), name="y")], trials=0)
    given = torch.randn(64, 32).bfloat16()
    wanted = (given.float() * 2 + 1).bfloat16()
    for _ in range(3):  # the third call would be a quick one
        found = kernel(given)
        assert isinstance(found, torch.Tensor) and found.dtype == torch.bfloat16 and torch.equal(found, wanted)
    out = np.empty((64, 32), BF)
    assert kernel(array_of(given), out=out) is out and np.array_equal(out, array_of(wanted))
    with pytest.raises(TypeError, match="must have dtype bfloat16, found float32"):
        kernel(given.float().numpy())


KINDS = {
    "product": lambda: dense(6, 10, 24), "product of results": lambda: dense(6, 8, 17, constant=False), "convolution": lambda: convolution(1, 6, 8, 20),
    "norm": lambda: norm(5, 19),
}  # fmt: skip


def convolution(padding: int, size: int, channels: int, outputs: int) -> list[Tensor]:
    x = te.placeholder((1, size, size, channels), "bfloat16", name="x")
    w = te.placeholder((3, 3, channels, outputs), "bfloat16", name="w", constant=True)
    return [x, w, nn.cast(nn.relu(nn.conv2d(x, w, 1, padding, data_layout="NHWC", kernel_layout="HWIO")), "bfloat16", name="y")]


def norm(rows: int, length: int) -> list[Tensor]:
    x, other = (te.placeholder((rows, length), "bfloat16", name=name) for name in "xz")
    sums = nn.sum(nn.cast(te.compute((rows, length), lambda i, j: x[i, j] + other[i, j], name="added"), "bfloat16"), 1)
    return [x, other, te.compute((rows, length), lambda i, j: (x[i, j] - sums[i]).astype("bfloat16"), name="y")]


def programs(kind: str, target: str) -> list[Program]:
    found, draw = [], seeded_draw(3)
    case = case_of(KINDS[kind]())
    for sketch in sketches(case, parse_target(target)):
        found.append(Program(case, sketch, tuple(draw.integer(0, int(size) - 1) for size in sketch.sizes), parse_target(target), "program"))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_sketch_equals_numpy(kind: str, bench: Bench) -> None:
    """On small whole numbers, whose sums are exact in any order."""
    made = programs(kind, HERE if kind != "norm" else "cpu -mcpu=x86-64-v3 -threads=1")
    for program in made[:4]:
        assert not interpreted(program, 20_000), str(program)
    for program, problem in zip(made, bench.problems(made), strict=True):
        assert not problem, f"{problem}\n{program}\n{program.source.text}"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("march", ["haswell", "x86-64-v4", "cooperlake"])
def test_compilers_have_nothing_to_say(compiler: str, march: str, tmp_path: Path) -> None:
    texts = [program.source.text for kind in KINDS for program in programs(kind, "cpu -mcpu=znver4 -threads=1")[:3]]
    assert not complaints((need_compiler(compiler), *STRICT, "-std=gnu99", "-O1", f"-march={march}"), texts, tmp_path)
