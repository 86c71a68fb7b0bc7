"""Parts of a text: each is a translation unit, and a nest that programs have in common has the same text in all of them."""

from __future__ import annotations

from dataclasses import replace

from ansor import te
from ansor.codegen.dialect import Dialect
from ansor.codegen.generate import Machine, generate
from ansor.codegen.source import CSource
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Parallel, Split, Step, Unroll
from ansor.te.tensor import Tensor

APART = Dialect(index="int", index_bits=32, alignment=4, pool=False, hosted=False, apart=True)


def two_products(dtype: str = "float32") -> list[Tensor]:
    """The second of which takes the result of the first, and what is at least 0: three nests."""
    a, b, c = (te.placeholder((8, 8), dtype, name=name) for name in "abc")
    r, s = te.reduce_axis((0, 8), name="r"), te.reduce_axis((0, 8), name="s")
    first = te.compute((8, 8), lambda i, j: te.sum(a[i, r] * b[r, j], r), name="first")
    second = te.compute((8, 8), lambda i, j: te.sum(first[i, s] * c[s, j], s), name="second")
    return [a, b, c, te.compute((8, 8), lambda i, j: te.max(second[i, j], 0), name="third")]


def written(*steps: Step, entry: str = "program", dialect: Dialect = APART, dtype: str = "float32") -> CSource:
    return generate(Sketch(Dag(two_products(dtype)), steps).lower_row((), entry), Machine(4, 2, dialect), entry)


def test_nests_declare_what_they_need_and_the_entry_declares_nests() -> None:
    parts = written().apart
    assert parts is not None and [one.name for one in parts.nests] == [f"program_nest{number}_apart" for number in range(3)]
    for one in parts.nests:
        text = one.text("other")
        assert f"void other{one.parameters} {{" in text and "program" not in text and "restrict" not in one.parameters
        assert f"void {one.name}{one.parameters};" in parts.entry and one.name in parts.whole
    assert parts.nests[0].body == "{ ansor_nest(a, b, first); }", "floats are aligned to 4 bytes already"
    bytes_ = written(dtype="int8").apart
    assert bytes_ is not None and "__builtin_assume_aligned(a, 4)" in bytes_.nests[0].body
    assert "assume_aligned" not in parts.entry


def test_functions_of_the_whole_text_are_not_inlined() -> None:
    assert written().text.count("static ANSOR_APART void ") == 3
    assert "ANSOR_APART" not in written(dialect=replace(APART, apart=False)).text


def test_a_nest_has_the_same_text_whatever_is_in_front_of_it_and_whatever_the_program_is_called() -> None:
    plain, other = written().apart, written(Split("first", "i", (4,), 2), Unroll("first", "r"), entry="another").apart
    assert plain is not None and other is not None
    assert plain.nests[0].text("x") != other.nests[0].text("x")
    assert [one.text("x") for one in plain.nests[1:]] == [one.text("x") for one in other.nests[1:]]


def test_a_nest_has_the_helpers_that_it_uses_alone() -> None:
    parts = written().apart
    assert parts is not None
    assert "max_f32" in parts.whole and "max_f32" not in parts.nests[0].before and any("max_f32" in one.before for one in parts.nests[1:])
    halves = written(dtype="float16").apart
    assert halves is not None and all("#error this compiler has no float16" in one.before for one in halves.nests)


def test_other_dialects_and_changed_texts_have_no_parts() -> None:
    assert written(dialect=Dialect()).parts is None and written(dialect=Dialect(pool=False)).parts is None
    shared = written(Parallel("first", 1), dialect=replace(APART, pool=True))
    assert shared.threads == 2 and shared.parts is None, "tasks are called through the pool"
    source = written()
    assert source.apart is source.parts and replace(source, text=source.text.replace("*restrict ", "*")).apart is None
