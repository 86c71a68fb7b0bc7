"""The passes of lowering: what each finds out, as text."""

from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.passes import traced
from ansor.schedule.lower import PASSES, Lowering, lower
from ansor.schedule.scopes import Scopes
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, PackInside, Split, Vectorize
from ansor.te.tensor import Tensor
from ansor.zoo.operators import matmul

REGIONS = """\
y[0 + 16]
  loops y_i_0 in 4, y_i_1 in 4
p[y_i_0 * 4 + 6], inside y_i_0
  loops p_i in 6"""
SCOPES = """\
x: float32[18] input
y: float32[16] output
p: float32[6] local"""
VALUES = """\
y[y_i_0 * 4 + y_i_1] = p[y_i_0 * 0 + y_i_1] + p[y_i_0 * 0 + y_i_1 + 2]
p[y_i_0 * 0 + p_i] = x[y_i_0 * 4 + p_i] * 2.0"""
NESTS = """\
x: float32[18] input
y: float32[16] output
for y_i_0 in 4
  p: float32[6] local
  for p_i in 6
    p[y_i_0 * 0 + p_i] = x[y_i_0 * 4 + p_i] * 2.0
  vectorized for y_i_1 in 4
    y[y_i_0 * 4 + y_i_1] = p[y_i_0 * 0 + y_i_1] + p[y_i_0 * 0 + y_i_1 + 2]"""


def neighbours() -> list[Tensor]:
    x = te.placeholder((18,), name="x")
    p = te.compute((18,), lambda i: x[i] * 2.0, name="p")
    return [x, te.compute((16,), lambda i: p[i] + p[i + 2], name="y")]


def sketch() -> Sketch:
    return Sketch(Dag(neighbours())).then(Split("y", "i", (4,), 2), ComputeAt("p", "y", "i_0"), Vectorize("y", "i_1"))


def test_every_pass_shows_what_it_finds_out() -> None:
    shown = {one.name: one.shown(lowering) for one, lowering in traced(PASSES, Lowering(sketch().state, {}))}
    assert shown == {"regions": REGIONS, "scopes": SCOPES, "values": VALUES, "nests": NESTS}


def test_copies_ahead_are_told() -> None:
    *_, (_, values), _ = traced(PASSES, Lowering(Sketch(Dag(matmul(4, 8, 8))).then(PackInside("C", "B")).state, {}))
    assert PASSES[2].shown(values).endswith("C: 1 copies ahead")


def test_memories_have_the_names_they_are_given() -> None:
    loops = lower(sketch().state, {}, scopes=Scopes(inside="scratchpad"))
    assert [(buffer.name, buffer.scope) for node in loops.body for buffer in getattr(node, "locals", ())] == [("p", "scratchpad")]
    packed = lower(Sketch(Dag(matmul(4, 8, 8))).then(PackInside("C", "B")).state, {}, scopes=Scopes(whole="arena"))
    assert [buffer.scope for buffer in packed.intermediates] == ["arena"]
