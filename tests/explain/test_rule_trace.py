from __future__ import annotations

from dataclasses import dataclass

import pytest

from ansor.explain.rule_trace import Firing, made_of, rule_trace
from ansor.ir.dag import Dag
from ansor.rules.base import Derived
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import CacheRead, CacheWrite, Pack, PackInside, Rfactor, Split, Tensorize
from ansor.search.derive import spaces
from ansor.targets.base import parse_target
from ansor.te import workloads
from ansor.te.tensor import Tensor

TARGET = parse_target("cpu -mcpu=znver4 -threads=4")
SIGNS = {"add_cache_write": CacheWrite, "add_rfactor": Rfactor, "pack_constants": Pack, "pack_operands": PackInside, "tensorize": Tensorize}
"""Rules that are the only source of a kind of step."""

WORKLOADS = {
    "matmul": workloads.matmul(64, 64, 64),
    "tall": workloads.matmul(4, 4, 512),
    "conv2d_bn_relu": workloads.conv2d_nchw_bn_relu(1, 14, 14, 16, 16, 3, 1, 1),
    "softmax": workloads.softmax_nm(16, 64),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_fired_rules_match_the_steps_of_every_sketch(name: str) -> None:
    dag = Dag(WORKLOADS[name])
    trace = rule_trace(dag, TARGET.rules, TARGET)
    for sketch in spaces(dag, TARGET):
        fired = trace.fired(sketch)
        for rule, step in SIGNS.items():
            assert any(one.rule == rule for one in fired) == any(isinstance(one, step) for one in sketch.steps), f"{rule} of\n{sketch}"


def test_order_and_stages() -> None:
    dag = Dag(workloads.matmul(64, 64, 64))
    trace = rule_trace(dag, TARGET.rules, TARGET)
    private = next(sketch for sketch in spaces(dag, TARGET) if [step.code for step in sketch.steps[:2]] == ["CHW", "SP"])
    assert trace.fired(private) == (Firing("add_cache_write", "C"), Firing("multi_level_tiling_with_fusion", "C_local"))
    assert trace.applied("multi_level_tiling", ["C"]) and not trace.applied("multi_level_tiling", ["C_local"])
    assert "tensorize" in trace.idle(["C"]) and "add_cache_write" not in trace.idle(["C"])


def test_rules_that_were_never_tried_are_not_idle() -> None:
    @dataclass(frozen=True)
    class TakesAll:
        exclusive: bool = True

        def derive(self, sketch: Sketch, stage: str, target: object) -> object:
            yield Derived(sketch)

    trace = rule_trace(Dag(workloads.matmul(8, 8, 8)), (TakesAll(), "always_inline"), TARGET)  # type: ignore[arg-type]
    assert trace.names == ("TakesAll", "always_inline") and trace.idle(["C"]) == ()
    assert trace.fired(Sketch(Dag(workloads.matmul(8, 8, 8)))) == (), "it added no step"


def test_stages_created_by_steps() -> None:
    tensors: list[Tensor] = workloads.matmul(64, 64, 64)
    sketch = Sketch(Dag(tensors)).then(CacheWrite("C"))
    assert made_of(sketch) == {"C_local": "C"} and made_of(Sketch(Dag(tensors))) == {}


def test_stages_that_took_over_the_arithmetic_of_a_declared_one() -> None:
    plain, kinds = Sketch(Dag(workloads.matmul(8, 8, 64))), (CacheWrite, Rfactor)
    assert made_of(plain, *kinds) == {} and made_of(plain.then(CacheWrite("C")), *kinds) == {"C_local": "C"}
    assert made_of(plain.then(Split("C", "k", (16,), 2), Rfactor("C", "k_1", 2)), *kinds) == {"C_rf": "C"}
    copied = plain.then(CacheRead("A", ("C",)))
    assert made_of(copied) and made_of(copied, *kinds) == {}, "a copy does no arithmetic"
