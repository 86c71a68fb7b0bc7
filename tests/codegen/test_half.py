"""Kernels of float16: every sketch of random declarations, special values, functions, and what callers hand over."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import ansor
from ansor import te
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.errors import ToolchainError
from ansor.ir.evaluate import evaluate
from ansor.measure.kernel import Kernel, build_kernels
from ansor.te.scalar import FLOAT_FUNCTIONS, PAIR_FUNCTIONS
from ansor.te.tensor import Tensor
from tests.declarations import seeded_draw
from tests.half_declarations import HALF_KINDS, half_case
from tests.programs import Bench, interpreted, programs_of

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")]
N = 37  # whole vectors and a tail


@pytest.mark.parametrize("compiler", ["zig", "gcc"])
@pytest.mark.parametrize("kinds", [sorted(HALF_KINDS)[k::3] for k in range(3)])
def test_every_sketch_of_random_declarations_equals_numpy(kinds: list[str], compiler: str, bench: Bench, tmp_path: Path) -> None:
    if not shutil.which(compiler) and compiler == "gcc":
        pytest.skip("no gcc on this machine")
    programs = []
    for kind in kinds:
        draw = seeded_draw(7)
        programs += programs_of(draw, half_case(draw, kind))[:5]
    for program in programs:
        assert not interpreted(program, 1000), str(program)
    problems = Bench(find_compiler(compiler), tmp_path, bench.flags).problems(programs)
    for program, problem in zip(programs, problems, strict=True):
        assert not problem, f"{problem}\n{program}\n{program.source.text}"


def vectorized(inputs: list[Tensor], out: Tensor) -> Kernel:
    schedule = ansor.create_schedule(out)
    schedule[out].vectorize(schedule[out].split(out.op.axis[0], 8)[1])
    return ansor.build(schedule, [*inputs, out])


def values(seed: int) -> np.ndarray[tuple[int], np.dtype[np.float16]]:
    found = np.random.default_rng(seed).standard_normal(N).astype(np.float16) * np.float16(2)
    found[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, 65504.0, -1e-4]
    return found


@pytest.mark.parametrize("name", [*FLOAT_FUNCTIONS, *PAIR_FUNCTIONS, "power", "abs"])
def test_functions_are_those_of_float32_rounded_once(name: str) -> None:
    x, y = te.placeholder((N,), "float16", name="x"), te.placeholder((N,), "float16", name="y")
    function, pairs = getattr(te, name), name in (*PAIR_FUNCTIONS, "power")
    out = te.compute((N,), lambda i: function(x[i], y[i]) if pairs else function(x[i]), name="out")
    a, b = values(0), values(1)[::-1].copy()
    given = [a, b] if pairs else [a]
    found = np.asarray(vectorized([x, y] if pairs else [x], out)(*given))
    (expected,) = evaluate([out], {"x": a, "y": b})
    wide = {"x": a.astype(np.float64), "y": b.astype(np.float64)}
    (exact,) = evaluate([out], wide, "float64") if name != "nextafter" else (expected,)
    assert found.dtype == np.float16
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    rounded = exact.astype(np.float16)
    near = np.isclose(found.astype(np.float64), rounded.astype(np.float64), rtol=2.0**-10, atol=6e-8, equal_nan=True)
    assert near.all(), (a[~near], found[~near], rounded[~near])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"])
def test_conversions_both_ways(dtype: str) -> None:
    x, y = te.placeholder((N,), "float16", name="x"), te.placeholder((N,), dtype, name="y")
    a = np.arange(N).astype(np.float16) * np.float16(1 if dtype == "bool" else 2.75)
    b = (np.arange(N) * 3.0 if dtype.startswith("float") else np.arange(N) % 2).astype(dtype)
    to, back = te.compute((N,), lambda i: x[i].astype(dtype), name="to"), te.compute((N,), lambda i: y[i].astype("float16"), name="back")
    assert np.array_equal(vectorized([x], to)(a), a.astype(dtype))
    assert np.array_equal(vectorized([y], back)(b), b.astype(np.float16))


def test_special_values_and_constants() -> None:
    x = te.placeholder((N,), "float16", name="x")
    out = te.compute((N,), lambda i: te.min(te.max(x[i] * 3 + te.const(1e6, "float16") * 0.0, te.min_value("float16")), x[i] / 0.1), name="out")
    other = te.compute((N,), lambda i: te.if_then_else(x[i] > te.const(0.1, "float16"), te.max_value("float16"), x[i] - 1e-7), name="out")
    for one in (out, other):
        (expected,) = evaluate([one], {"x": values(3)})
        assert np.allclose(vectorized([x], one)(values(3)), expected, rtol=2e-3, equal_nan=True)


def test_arrays_and_tensors_are_taken_as_they_are() -> None:
    x = te.placeholder((64, 32), "float16", name="x")
    kernel = ansor.auto_schedule([x, te.compute((64, 32), lambda i, j: x[i, j] * 2 + 1, name="y")], trials=0)
    given = torch.randn(64, 32).half()
    found = kernel(given)
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float16 and torch.allclose(found, given * 2 + 1, rtol=2e-3)
    out = np.empty((64, 32), np.float16)
    assert kernel(given.numpy(), out=out) is out and np.array_equal(out, found.numpy())
    with pytest.raises(TypeError, match="must have dtype float16, found float32"):
        kernel(given.float().numpy())


def test_a_search_finds_programs(tmp_path: Path) -> None:
    a, b, k = te.placeholder((48, 40), "float16", name="A"), te.placeholder((40, 56), "float16", name="B"), te.reduce_axis((0, 40), "k")
    c = te.compute((48, 56), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    wide = te.compute((48, 56), lambda i, j: te.exp(te.max(c[i, j], 0) * 0.1).astype("float32") * 2.0, name="D")
    records = tmp_path / "records.jsonl"
    kernel = ansor.auto_schedule([a, b, wide], trials=6, records=records)
    assert '"wrong_answer"' not in records.read_text()
    x, y = (np.random.default_rng(k).uniform(-1, 1, shape).astype(np.float16) for k, shape in enumerate([(48, 40), (40, 56)]))
    (expected,) = evaluate([wide], {"A": x, "B": y}, "float64")
    assert np.allclose(kernel(x, y), expected, rtol=2e-2)


def test_a_compiler_without_halves_says_so_in_a_sentence() -> None:
    if not shutil.which("gcc"):
        pytest.skip("no gcc on this machine")
    x = te.placeholder((N,), "float16", name="x")
    with pytest.raises(ToolchainError, match="this compiler has no float16"):
        ansor.auto_schedule([x, te.compute((N,), lambda i: x[i] + 1, name="y")], target="cpu -cc='gcc -U__FLT16_MANT_DIG__'", trials=0)


@pytest.mark.parametrize("compiler", ["zig", "gcc"])
def test_any_processor_has_halves(compiler: str) -> None:
    """Those without instructions for them convert by functions of the compiler's own library."""
    if not shutil.which(compiler) and compiler == "gcc":
        pytest.skip("no gcc on this machine")
    x = te.placeholder((N,), "float16", name="x")
    schedule = ansor.create_schedule(te.compute((N,), lambda i: te.exp(x[i]) / 3, name="y"))
    (kernel,) = build_kernels([ansor.build(schedule)._source], CToolchain(find_compiler(compiler), ""))
    a = np.linspace(-4, 4, N).astype(np.float16)
    assert np.allclose(kernel(a), np.exp(a) / 3, rtol=3e-3)
