"""Answers of trial programs: read into values, and refused with a ValueError when anything else came."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.measure.failure import Failure
from ansor.measure.trial.answer import Answer, Element, KeptOutput, OutputCheck, read_answer

TRIAL = (
    '{"costs": ["x3ff0000000000000"], "cut_short": false, "later": false, "check": [{"argument": 2, "size": 4, "wrong": 0, "unwritten": 0, '
    '"worst": "x3fe0000000000000", "allowed": "x3eb0000000000000", "at": 1, "found": "x7ff0000000000000", "expected": -3}], '
    '"sums": [{"argument": 2, "block": 2, "count": 1, "blocks": "3ff0'
    '0000000000004000000000000000000000000000000bbff000000000000040000000000000000000000000000000"}, '
    '{"argument": 3, "block": 2, "count": 1, "hash": "00000000000000ff"}]}'
)
REFERENCE = (
    '{"reference": {"input_scale": "x3ff0000000000000", "outputs": [{"size": 4, "nan": 1, "infinite": 0, "sensitivity": "x0000000000000000"}]}, "sums": []}'
)


def test_a_trial() -> None:
    answer = read_answer(TRIAL)
    assert answer.costs == (1.0,) and answer.failure is None
    assert answer.checks == (OutputCheck(2, 4, 0, 0, 0.5, 2.0**-20, Element(1, float("inf"), -3)),)
    blocks, hashed = answer.sums
    assert blocks.sums.tolist() == [[1.0], [-1.0]] and blocks.magnitudes.tolist() == [2.0, 2.0] and blocks.odd.tolist() == [11, 0] and hashed.hash == 255


def test_a_reference_and_a_failure() -> None:
    assert read_answer(REFERENCE) == Answer(kept=(KeptOutput(4, 1, 0, 0.0),))
    assert read_answer('{"failure": ["crash", "why"]}').failure == Failure("crash", "why")


@pytest.mark.parametrize("text", (
    "", "[]", "{}", "null", '{"failure": ["luck", "why"]}', '{"failure": ["crash"]}', '{"costs": [1.0], "cut_short": false, "check": []}',
    '{"costs": ["xfff0000000000000"], "cut_short": false, "later": false, "check": [], "sums": []}', TRIAL[:-3], TRIAL.replace('"at": 1', '"at": -1'),
    TRIAL.replace("40000000", "4000000"), TRIAL.replace('"size": 4', '"size": true'), REFERENCE.replace('"outputs": [{', '"outputs": ["x", {'),
))  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_answer(text)


@given(st.data())
def test_damaged_answers_are_values_or_refused(data: st.DataObject) -> None:
    text = bytearray(data.draw(st.sampled_from((TRIAL, REFERENCE))).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(32, 126))
    with contextlib.suppress(ValueError):
        assert isinstance(read_answer(text.decode()), Answer)


@settings(max_examples=40)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(("costs", "check", "sums", "reference", "outputs", "failure", "size")), inner)))
def test_other_json_is_refused(value: object) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(read_answer(json.dumps(value)), Answer)
