"""Tiles of matrix registers: which nests are written so, and that they compute what they declare, cut at both ends or not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Pack, PackInside, Reorder, Split, Step, Tensorize
from ansor.support.bfloat16 import BFLOAT16
from ansor.targets.base import parse_target
from ansor.te.tensor import Tensor
from tests.codegen.patterns.forms import body, forms
from tests.codegen.tiles_here import PLAIN, REFUSED
from tests.programs import QUICK, Bench, Program, case_of

TARGET = parse_target("cpu -mcpu=sapphirerapids -threads=1")
PAIRS = {"amx_u8s8": ("uint8", "int8"), "amx_s8u8": ("int8", "uint8"), "amx_s8s8": ("int8", "int8"), "amx_u8u8": ("uint8", "uint8")}


def product(a: str = "uint8", b: str = "int8", n: int = 32, m: int = 32, k: int = 128, *, constant: bool = True) -> list[Tensor]:
    x, y = te.placeholder((n, k), a, name="a"), te.placeholder((k, m), b, name="b", constant=constant)
    return [x, y, te.nn.matmul(x, y, out_dtype="float32" if a == BFLOAT16 else "int32", name="c")]


def steps(name: str = "amx_u8s8", rows: int = 32, columns: int = 32, depth: int = 64, *, constant: bool = True) -> list[Step]:
    group = 2 if name == "amx_dpbf16" else 4
    packed = Pack("c", "b") if constant else PackInside("c", "b")
    found: list[Step] = [packed, Split("c", "i", (rows,), 2), Split("c", "j", (columns,), 2), Split("c", "k", (depth,), 2), Split("c", "k_1", (group,), 2)]
    return [*found, Reorder("c", ("j_0", "i_0", "k_0", "i_1", "k_1_0", "j_1", "k_1_1")), Tensorize("c", "j_1", "k_1_1", name)]


def test_rows_and_columns_are_blocks() -> None:
    assert forms(product(), *steps(), machine=TARGET.machine).endswith("block tile  c: blocks of amx_u8s8 of 32 x 32, over c_k_0, c_k_1_0")
    text = body(product(), *steps(), machine=TARGET.machine)
    assert text[text.index("  ANSOR") :].startswith("""\
  ANSOR_amx_u8s8_begin(shape0);
  {
    ANSOR_amx_u8s8_zero(0);
    ANSOR_amx_u8s8_zero(1);
    ANSOR_amx_u8s8_zero(2);
    ANSOR_amx_u8s8_zero(3);
    for (long c_k_0 = 0; c_k_0 < 2; ++c_k_0) {
      ANSOR_amx_u8s8_load(4, &a[c_k_0 * 64], 128);
      ANSOR_amx_u8s8_load(5, &a[c_k_0 * 64 + 2048], 128);
      ANSOR_amx_u8s8_load(6, &b[c_k_0 * 2048], 128);
      ANSOR_amx_u8s8_load(7, &b[c_k_0 * 2048 + 64], 128);
      ANSOR_amx_u8s8_dot(0, 4, 6);
      ANSOR_amx_u8s8_dot(1, 4, 7);
      ANSOR_amx_u8s8_dot(2, 5, 6);
      ANSOR_amx_u8s8_dot(3, 5, 7);
    }
    ANSOR_amx_u8s8_store(0, &c[0], 128);
    ANSOR_amx_u8s8_store(1, &c[16], 128);
    ANSOR_amx_u8s8_store(2, &c[512], 128);
    ANSOR_amx_u8s8_store(3, &c[528], 128);
  }
  ANSOR_amx_u8s8_end();
}
""")


def test_blocks_are_of_equal_length_if_that_is_possible() -> None:
    """Then they have one shape: 28 rows are two blocks of 14."""
    text = body(product(n=28), *steps(rows=28), machine=TARGET.machine)
    assert text.count("static const unsigned char") == 1
    assert "&a[c_k_0 * 64 + 1792], 128" in text


def test_shorter_blocks_at_the_end_have_another_shape() -> None:
    text = body(product(n=50), *steps(rows=32), machine=TARGET.machine)
    assert text.count("static const unsigned char") == 2  # 18 rows are left, 9 and 9
    assert text.count("_shape(shape1);") == 1
    assert text.count("_shape(shape0);") == 1


def test_what_registers_cannot_load_is_plain() -> None:
    """A b that is not stored in groups, and more groups than an instruction sums."""
    assert "block tile" not in forms(product(), *steps()[1:], machine=TARGET.machine)
    assert "block tile" not in forms(product(), *steps(depth=128), machine=TARGET.machine)


# programs ---------------------------------------------------------------------------------------------------------------------------------------------


def values(shape: tuple[int, ...], dtype: str, seed: int) -> NDArray[np.generic]:
    rng = np.random.default_rng(seed)
    if dtype == BFLOAT16:
        return (rng.integers(-4, 5, shape) / 4).astype(np.dtype(BFLOAT16))
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def program(tensors: list[Tensor], made: list[Step]) -> Program:
    case = case_of(tensors, **{tensor.name: values(tensor.shape, tensor.dtype, k) for k, tensor in enumerate(tensors[:2])})
    return Program(case, Sketch(case.dag).then(*made), (), TARGET, "program")


def programs() -> list[Program]:
    found = [program(product(a, b), steps(name)) for name, (a, b) in PAIRS.items()]
    found.append(program(product(BFLOAT16, BFLOAT16), steps("amx_dpbf16", depth=32)))
    shapes = [(32, 32, 128), (28, 32, 64), (50, 32, 64), (33, 48, 192), (7, 16, 64), (64, 40, 96), (20, 23, 128), (100, 100, 128)]
    found += [program(product(n=n, m=m, k=k), steps(rows=min(n, 32), columns=min(m, 32), depth=k if k < 64 else 32)) for n, m, k in shapes]
    found += [program(product(n=n, m=m, k=k, constant=False), steps(rows=16, columns=16, constant=False)) for n, m, k in shapes if k % 64 == 0]
    return [*found, program(product(n=40, m=40), outside()), *convolutions()]


def outside() -> list[Step]:
    """Results are loaded and stored in each iteration of an outer reduction loop."""
    found = steps(rows=16, columns=16)
    return [*found[:-2], Reorder("c", ("k_0", "j_0", "i_0", "i_1", "k_1_0", "j_1", "k_1_1")), found[-1]]


def convolutions() -> list[Program]:
    """Rows of an image are evenly spaced, but an image may have a border: then each row of it is a block."""
    x, w = te.placeholder((2, 9, 9, 32), "uint8", name="a"), te.placeholder((3, 3, 32, 16), "int8", name="b", constant=True)
    found = []
    for strides, size in ((1, 7), (2, 4)):
        y = te.nn.conv2d(x, w, strides=strides, data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32", name="c")
        n, h, v, o, kh, kw, c = (axis.name for axis in Sketch(Dag([x, w, y])).state["c"].axes)
        split = (Split("c", h, (2,), 2), Split("c", c, (32,), 2), Split("c", f"{c}_1", (4,), 2))
        order = (n, f"{h}_0", kh, kw, f"{c}_0", f"{h}_1", v, f"{c}_1_0", o, f"{c}_1_1")
        found.append(program([x, w, y], [Pack("c", "b"), *split, Reorder("c", order), Tensorize("c", o, f"{c}_1_1", "amx_u8s8")]))
        assert f"{{1, {'0, ' * 15}64, 0, 0, 0, 64, 0, 0, 0, 32, 0, 32, 0, 64, {'0, ' * 19}{size}, 0, {size}, 0, {size}, {size}, 8, " in found[-1].source.text
    return found


@pytest.mark.compiler
@pytest.mark.parametrize("flags", [pytest.param(("-march=native",), marks=REFUSED), PLAIN], ids=["as here", "plain"])
def test_programs_compute_what_they_declare(flags: tuple[str, ...], bench: Bench) -> None:
    found = programs()
    assert all("_dot(0, 4, 6)" in one.source.text for one in found)
    problems = Bench(bench.compiler, bench.folder, (*QUICK, *flags)).problems(found)
    assert not any(problems), [f"{problem}\n{one}" for problem, one in zip(problems, found, strict=True) if problem]
