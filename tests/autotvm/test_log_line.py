"""Reading and writing log lines, and unusable lines."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.autotvm import (
    AnnotateEntity,
    ConfigEntity,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
    Task,
    decode,
    encode,
)
from ansor.compat.autotvm.log_line import read_line
from ansor.errors import RecordError
from ansor.support.json_values import DEEPEST, LONGEST
from tests.autotvm.lines import LINE, changed

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
tuples = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)
entities = (
    st.lists(st.integers(), min_size=1, max_size=5).map(SplitEntity)
    | st.permutations(range(4)).map(ReorderEntity)
    | st.lists(st.text() | st.integers(0, 9), max_size=4).map(AnnotateEntity)
    | json_values.map(OtherOptionEntity)
)
inputs = st.builds(
    MeasureInput,
    st.text().filter(lambda text: "-target" not in text),
    st.builds(Task, st.text(), st.lists(tuples, max_size=4).map(tuple), st.dictionaries(st.text(), tuples, max_size=2)),
    st.builds(ConfigEntity, st.integers(-1), st.none() | st.text(), st.dictionaries(st.text(), entities, max_size=5)),
)
seconds = st.floats(0, 1e9)
results = st.builds(MeasureResult, st.lists(seconds, min_size=1, max_size=4).map(tuple), st.just(0), seconds, seconds)


def test_a_line() -> None:
    inp, result = decode(LINE)
    assert inp.target == "llvm -mcpu=core-avx2" and inp.task.kwargs == {}
    assert inp.task.workload == ("dense", ("TENSOR", (1, 512), "float32"), ((1, 1), ()), None, 0.5)
    assert inp.config.index == 193 and inp.config.code_hash is None and inp.config["tile_y"].size == [-1, 8] and inp.config["order"].perm == [1, 0]
    assert inp.config["ann"].anns == ["vec", "none"] and inp.config["k"].val is False and inp.config["n"].val == [1, "x"]
    assert math.isclose(result.mean_cost, 0.00115) and result == ((0.0012, 0.0011), 0, 0.8, 1650000000.25)


def test_lines_round_trip_exactly() -> None:
    record = read_line(LINE)
    assert encode(record.input, record.result, tvm_version=record.tvm_version) == LINE
    more = changed("tuner", to={"name": ["ga", None]})
    record = read_line(more)
    assert encode(record.input, record.result, tvm_version=record.tvm_version, others=record.others) == json.dumps(json.loads(more))


@given(inputs, results, st.text())
def test_records_read_back(inp: MeasureInput, result: MeasureResult, version: str) -> None:
    text = encode(inp, result, tvm_version=version)
    assert "\n" not in text and text.isascii()
    record = read_line(text)
    assert (record.input, record.result, record.tvm_version) == (inp, result, version)
    assert decode(text) == (inp, result)


@given(inputs, st.sampled_from(list(MeasureErrorNo)[1:]))
def test_failures_are_written_with_an_impossible_cost(inp: MeasureInput, error_no: MeasureErrorNo) -> None:
    text = encode(inp, MeasureResult((), error_no, 1.0, 2.0))
    assert decode(text)[1] == ((1e9,), error_no, 1.0, 2.0) and decode(text)[1].mean_cost == math.inf


def test_an_old_name_in_targets() -> None:
    assert decode(changed("input", 0, to="llvm -target=aarch64-linux-gnu -target-x=1"))[0].target == "llvm -mtriple=aarch64-linux-gnu -target-x=1"


def test_a_record_without_knobs_is_fine() -> None:
    assert list(decode(changed("config", "entity", to=[]))[0].config) == [] and decode(changed("config", "index", to=-1))[0].config.index == -1


REFUSED = {
    "": "it is not JSON", "[]": "it is a list of 0", "3": "it is a number", LINE[:-1]: "it is not JSON", "{}": "it has no version",
    '{"version": 0.2}': "it has no input, no config, no result",
    '{"i": ["llvm", "conv", [], {}, ["conv"], {"i": 1, "t": "direct", "c": null, "e": []}], "r": [[0.1], 0, 1, 2], "v": 0.1}': "it is of version 0.1",
    changed("version", to=0.3): "its version is 0.3; 0.2 is read", changed("version", to="0.2"): "its version is a text; 0.2 is read",
    changed("version", to=True): "its version is a truth value", changed("input", to={}): "its input is an object",
    changed("input", to=["llvm"]): "its input is a list of 1", changed("input", 0, to=3): "its target is a number",
    changed("input", 1, to=None): "its task is null",
    changed("input", 2, to="x"): "its args is a text", changed("input", 3, to=[]): "its kwargs is a list", changed("config", to=[]): "its config is a list",
    changed("config", "index", to="1"): "its config cannot be used (asked for a configuration whose index is '1'",
    changed("config", "entity", 0, to=["tile", "sp", ["a"]]): "its config cannot be used (asked for knob 'tile'",
    changed("result", to=[[1.0], 0]): "its result is a list of 2", changed("result", 0, to=[]): "it has no costs, and no error",
    changed("result", 0, to=[None]): "its costs",
    changed("result", 0, to=[-1.0]): "its costs", changed("result", 0, to=[True]): "its costs", changed("result", 0, to=[10**400]): "its costs",
    changed("result", 1, to=9): "its error_no is 9, not one of 0 to 8", changed("result", 1, to=0.0): "its error_no is 0.0",
    changed("result", 1, to=False): "its error_no is a truth value", changed("result", 2, to="x"): "its all_cost is the text 'x'",
    changed("result", 3, to=None): "its timestamp is null", changed("tvm_version", to=9): "its tvm_version is a number",
    LINE.replace("0.0012", "NaN"): "it is not JSON (NaN", LINE.replace("0.0012", "1e999"): "it is not JSON (1e999",
    LINE.replace("0.5]", "-1e999]"): "it is not JSON (-1e999",
    LINE.replace("193", "9" * 5000): "it is not JSON", LINE.replace("null, 0.5", "[" * 100_000): "nested more than",
    LINE.replace("false", "[" * DEEPEST + "]" * DEEPEST): "nested more than", LINE.replace("false", "[" * 3000 + "]" * 3000): "nested more than",
    " " * LONGEST + LINE: "it has 10", "llvm\tgASV\tgASV\tgASV": "decode(row, 'pickle') reads those",
}  # fmt: skip


@pytest.mark.parametrize("row, reason", REFUSED.items(), ids=[reason for reason in REFUSED.values()])
def test_unusable_lines_give_a_reason(row: str, reason: str) -> None:
    with pytest.raises(RecordError) as error:
        decode(row)
    found = str(error.value)
    assert found.startswith(f"asked to read a log line, but {reason}") or reason.startswith(("nested", "decode")) and reason in found
    assert len(found) < 400 and found.isprintable()


def test_every_truncated_line_gives_a_reason() -> None:
    for size in range(len(LINE)):
        with pytest.raises(RecordError):
            decode(LINE[:size])


places = st.sampled_from([
    ("input",), ("input", 0), ("input", 1), ("input", 2), ("input", 3), ("input", 2, 0), ("config",), ("config", "index"), ("config", "code_hash"),
    ("config", "entity"), ("config", "entity", 0), *(("config", "entity", i, j) for i in range(4) for j in range(3)), ("config", "entity", 0, 2, 1),
    ("result",), ("result", 0), ("result", 0, 0), ("result", 1), ("result", 2), ("result", 3), ("version",), ("tvm_version",),
])  # fmt: skip


@given(places, json_values | st.sampled_from([10**300, 10**4000, -(10**4000), 2**64, 1e308, -1, "\x00\x1b[2J\ud800", "__import__('os').abort()", "🙂" * 9999]))
def test_any_changed_value_is_read_or_refused(path: tuple[str | int, ...], value: object) -> None:
    row = changed(*path, to=value)
    try:
        record = read_line(row)
    except RecordError as error:
        assert str(error).isprintable() and len(str(error)) < 500
    else:
        again = encode(record.input, record.result, tvm_version=record.tvm_version)
        assert read_line(again) == record


def test_there_are_two_protocols() -> None:
    for use in (lambda: decode(LINE, "xml"), lambda: encode(*decode(LINE), "xml")):
        with pytest.raises(RecordError, match="protocol 'xml'; give 'json', or 'pickle'"):
            use()
    with pytest.raises(RecordError, match="as pickled lines do: decode\\(row, 'pickle'\\) reads those"):
        decode("llvm\ta\tb\tc")


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_values_that_json_cannot_hold_are_refused(value: object) -> None:
    inp = MeasureInput("llvm", Task("x"), ConfigEntity(3, None, {"k": OtherOptionEntity(value)}))
    with pytest.raises(RecordError, match="asked to log configuration 3 of task 'x', which JSON cannot hold"):
        encode(inp, MeasureResult((1.0,), 0, 1.0, 1.0))


def test_tasks_hash_by_name_and_arguments() -> None:
    assert len({Task("x", (1, (2,))), Task("x", (1, (2,))), Task("x", (1, (3,)))}) == 2


OLD = (
    '{"i": ["cuda -model=titanx", "topi_nn_conv2d", [["TENSOR", [1, 16, 8, 8], "float32"]], {}, ["conv2d", [1, 16, 8, 8, "float32"]], '
    '{"i": 970, "c": null, "e": [["tile_f", "sp", [12, 1, 16, 2]], ["step", "ot", 0]], "t": "direct"}], "r": [[8.4e-05], 0, 14.0, 1535426980.5], "v": 0.1}'
)


def test_old_lines_are_read_on_request() -> None:
    record = read_line(OLD, old=True)
    assert record.input.task == Task("topi_nn_conv2d", (("TENSOR", (1, 16, 8, 8), "float32"),)) and record.input.target == "cuda -model=titanx"
    assert record.input.config["tile_f"].size == [12, 1, 16, 2] and record.input.config.index == 970 and record.result.costs == (8.4e-05,)
    assert record.others == {"workload": ["conv2d", [1, 16, 8, 8, "float32"]], "template_key": "direct"}
    assert read_line(encode(record.input, record.result, others=record.others)) == record
    assert read_line(LINE, old=True) == read_line(LINE)


@given(st.integers(0, 5), json_values)
def test_old_lines_with_arbitrary_values(place: int, value: object) -> None:
    for path in (("i", place), ("i", 5, "iect"[place % 4]), ("r", place % 4), (["i", "r", "v", "input", "config", "version"][place],)):
        row = changed(*path, to=value, row=OLD)
        try:
            record = read_line(row, old=True)
        except RecordError as error:
            assert str(error).isprintable()
        else:
            assert read_line(encode(record.input, record.result, others=record.others)) == record


def test_extra_fields_must_have_other_names() -> None:
    with pytest.raises(RecordError, match="asked to log the other fields input, x"):
        encode(*decode(LINE), others={"input": 3, "x": 4})
