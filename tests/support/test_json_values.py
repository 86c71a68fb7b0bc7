"""JSON that strangers wrote: what is read, and what is refused."""

import pytest

from ansor.errors import RecordError
from ansor.support.json_values import DEEPEST, LONGEST, brief, frozen, is_number, kind, parse, told


def test_what_is_read() -> None:
    assert parse('{"a": [1, 2.5, null, true, "x"]}') == {"a": [1, 2.5, None, True, "x"]}
    assert parse("[" * DEEPEST + "]" * DEEPEST) and parse('"' + "x" * (LONGEST - 2) + '"')


@pytest.mark.parametrize("text, reason", [
    ("", "it is not JSON"), ("NaN", "NaN is not a JSON number"), ("-Infinity", "-Infinity is not a JSON number"), ("1e999", "1e999 is not a JSON number"),
    ("9" * 5000, "it is not JSON"), ("[" * 100_000, "nested more than 50 deep"), ("[" * (DEEPEST + 2) + "]" * (DEEPEST + 2), "nested more than 50 deep"),
    ('{"a":' * 60 + "1" + "}" * 60, "nested more than 50 deep"), (" " * LONGEST + "1", "it has 1048577 characters, the longest that is read has 1048576"),
])  # fmt: skip
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RecordError) as error:
        parse(text)
    assert reason in str(error.value) and str(error.value).startswith("asked to read a log line, but it")


def test_numbers() -> None:
    assert [is_number(value) for value in (1, 0.5, 10**300, True, 10**400, float("nan"), float("inf"), "1", None)] == [True] * 3 + [False] * 6


def test_values_in_words() -> None:
    values: list[object] = [None, True, 1, 0.5, "x", [1, 2], {}]
    assert list(map(kind, values)) == ["null", "a truth value", "a number", "a number", "a text", "a list of 2", "an object"]
    values = [3, True, "\x1b\ud800", []]
    assert list(map(told, values)) == ["3", "a truth value", r"the text '\x1b\ud800'", "a list of 0"]
    assert told(10**400) == "a number" and len(told("x" * 999)) < 100 and brief("x" * 80) == "x" * 80 and len(brief("x" * 81)) == 80
    assert frozen([1, [2, {"a": [3]}]]) == (1, (2, {"a": [3]}))
