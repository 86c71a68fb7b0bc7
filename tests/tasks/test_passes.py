"""A program after every pass."""

from dataclasses import replace

import pytest

from ansor.codegen.source import CSource
from ansor.ir.dag import Dag
from ansor.ir.loops import Loops
from ansor.schedule.sketch import Sketch
from ansor.targets import base
from ansor.targets.base import Target, parse_target
from ansor.tasks.passes import passes_of
from ansor.zoo.operators import matmul

SKETCH = Sketch(Dag(matmul(4, 4, 4)))


def test_lowering_then_what_makes_the_text() -> None:
    shown = list(passes_of(SKETCH, (), parse_target("cpu -mcpu=haswell -threads=1"), "mm"))
    assert [one.name for one in shown] == ["regions", "scopes", "values", "nests", "simplify", "cases", "sums", "places", "patterns", "tree", "text"]
    assert shown[-1].text == parse_target("cpu -mcpu=haswell -threads=1").emit(SKETCH.lower_row((), "mm"), "mm").text


def test_a_kind_that_writes_something_else_shows_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def listing(target: Target, loops: Loops, entry: str) -> CSource:
        return CSource(f"{entry} {len(loops.body)}", entry, ())

    codegen = base.CodeGenerator(emit=listing)
    monkeypatch.setitem(base._kinds, "listing", replace(base.find_kind("cpu"), name="listing", codegen=codegen))
    *_, last = passes_of(SKETCH, (), replace(parse_target("cpu"), kind="listing"), "mm")
    assert str(last) == "-- text: as the kind listing writes it\nmm 1"
