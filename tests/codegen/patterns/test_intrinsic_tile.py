"""Register tiles of instructions; `tests/codegen/test_tensorized.py` has their operands."""

from ansor import te
from ansor.schedule.steps import Reorder, Split, Step, Tensorize
from ansor.te.tensor import Tensor
from tests.codegen.patterns.forms import body, forms

STEPS: tuple[Step, ...] = (
    Split("c", "j", (8,), 2), Split("c", "k", (4,), 2), Reorder("c", ("i", "j_0", "k_0", "j_1", "k_1")), Tensorize("c", "j_1", "k_1", "avx_dpbusd_u8s8"),
)  # fmt: skip


def product(n: int, m: int, k: int) -> list[Tensor]:
    a, b, r = te.placeholder((n, k), "uint8", "a"), te.placeholder((m, k), "int8", "b"), te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(te.cast("int32", a[i, r]) * te.cast("int32", b[j, r]), axis=r), name="c")]


def test_the_instruction_runs_the_innermost_loops() -> None:
    assert forms(product(2, 16, 8), *STEPS).endswith("intrinsic tile  c: a tile of avx_dpbusd_u8s8 of 8, over c_k_0")
    assert "acc0_0 = ANSOR_avx_dpbusd_u8s8_8(acc0_0, " in body(product(2, 16, 8), *STEPS)


def test_without_it_the_same_nest_is_a_register_tile() -> None:
    assert "  register tile  c" in forms(product(2, 16, 8), *STEPS[:3])
