"""Reading and writing log lines of every version, and unusable lines."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.auto_scheduler import (
    HardwareParams,
    LayoutRewriteOption,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RecordedState,
    RecordedTask,
    dump_record_to_string,
    load_record_from_string,
)
from ansor.compat.auto_scheduler.log_line import VERSIONS, LogRecord, read_line, write_line
from ansor.compat.auto_scheduler.steps import ComputeInlineStep
from ansor.errors import RecordError
from ansor.support.json_values import DEEPEST, LONGEST
from tests.auto_scheduler.lines import HARDWARE, HASHED, LINE, MATMUL, STEPS, TASKS, changed, line, measured
from tests.auto_scheduler.test_steps import steps

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
number = st.integers(-(2**31), 2**31 - 1)
task_fields = st.tuples(
    st.text(), st.text(), st.builds(HardwareParams, *[number] * 8), st.text(), st.sampled_from(LayoutRewriteOption), st.lists(st.text(), max_size=3).map(tuple)
)
tasks = st.builds(lambda fields, size: RecordedTask(*fields[:size]), task_fields, st.integers(2, 6))
inputs = st.builds(MeasureInput, tasks, st.builds(RecordedState, st.lists(steps, max_size=5).map(tuple)))
seconds = st.floats(0, allow_infinity=False) | st.integers(0, 2**60)
results = st.builds(
    MeasureResult, st.lists(seconds, min_size=1, max_size=4), st.sampled_from(MeasureErrorNo), st.text(), seconds, st.floats(-1e300, 1e300)
)


def test_a_line() -> None:
    inp, result = load_record_from_string(LINE)
    assert inp.task.workload.name == "matmul" and inp.task.target_kind == "cuda" and inp.task.target_host == "llvm -keys=cpu"
    assert inp.task.hardware_params == HardwareParams(-1, 16, 64, 49152, 2147483647, 1024, 8, 32)
    assert inp.task.layout_rewrite_option is LayoutRewriteOption.INSERT_TRANSFORM_STAGE and inp.task.task_input_names == ("W_data", "W_indices")
    assert [step.to_list() for step in inp.state.transform_steps] == STEPS and inp.state.stages == ()
    assert result == MeasureResult((0.0044742, 8.75e-06), 0, "", 0.335558, 1607112214) and math.isclose(result.mean_cost, 0.002241475)


@pytest.mark.parametrize("version, task", TASKS.items())
def test_every_version_round_trips_exactly(version: str, task: list[object]) -> None:
    row = line(task, version=version)
    record = read_line(row)
    assert write_line(record) == row and record.version == version
    fields = [record.input.task.hardware_params, record.input.task.target_host, record.input.task.layout_rewrite_option, record.input.task.task_input_names]
    assert [field is not None for field in fields] == [place < len(task) for place in range(2, 6)]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_length_of_a_task_is_read_in_every_version(version: str) -> None:
    rows = [line(task, version=version) for task in TASKS.values()]
    assert [write_line(read_line(row)) for row in rows] == rows


def test_failures_as_tvm_writes_them() -> None:
    row = f'{{"i": [[{json.dumps(MATMUL)}, "llvm"], [[], []]], "r": [[1e+10], 6, 15, 1607112214], "v": "v0.2"}}'
    record = read_line(row)
    assert write_line(record) == row and record.result.mean_cost == math.inf and record.result.error_no == MeasureErrorNo.BUILD_TIMEOUT
    assert read_line(row.replace("1e+10", "")).result.costs == ()


def test_numbers_as_tvm_writes_them() -> None:
    inp, result = measured(1.0)
    costs = (0.25, 1.0, 0.0, 1e10, 123456789.0, 0.1 + 0.2, 3)
    row = write_line(LogRecord(inp, dataclasses.replace(result, costs=costs, all_cost=-0.0, timestamp=1607112214.0)))
    assert '"r": [[0.25, 1, 0, 1e+10, 123456789, 0.30000000000000004, 3], 0, 0, 1607112214]' in row and write_line(read_line(row)) == row


def test_an_option_in_the_wrong_place() -> None:
    wrong, right = line([HASHED, "llvm", 2, HARDWARE, ""], version="v0.5"), line([HASHED, "llvm", HARDWARE, "", 2], version="v0.5")
    assert read_line(wrong) == read_line(right) and write_line(read_line(wrong)) == right


def test_printable_non_ascii_letters_are_written_unescaped() -> None:
    inp, result = measured(1.0, key="é")
    assert '"é"' in dump_record_to_string(inp, result) and dump_record_to_string(inp, result).endswith('"v": "v0.6"}\n')
    assert dump_record_to_string(*measured(1.0, key="\ud800é\u2028")).isascii()


@given(inputs, results, st.sampled_from(VERSIONS))
def test_records_read_back(inp: MeasureInput, result: MeasureResult, version: str) -> None:
    record = LogRecord(inp, result, version)
    text = write_line(record)
    assert text.isprintable() and read_line(text) == record and write_line(read_line(text)) == text
    assert load_record_from_string(dump_record_to_string(inp, result)) == (inp, result)


def test_records_that_a_line_cannot_hold_are_refused() -> None:
    inp, result = measured(1.0)
    task = inp.task.recorded
    unheld: list[tuple[MeasureInput, MeasureResult]] = [
        (inp, dataclasses.replace(result, costs=(math.nan,))), (inp, dataclasses.replace(result, costs=(-1.0,))),
        (inp, dataclasses.replace(result, error_no=9)),
        (inp, dataclasses.replace(result, costs=())), (MeasureInput(task, RecordedState((ComputeInlineStep(-1),))), result),
        (MeasureInput(dataclasses.replace(task, hardware_params=None), inp.state), result),
        (MeasureInput(dataclasses.replace(task, target_host=None, layout_rewrite_option=LayoutRewriteOption.NO_REWRITE), inp.state), result),
        (MeasureInput(dataclasses.replace(task, workload_key="x" * LONGEST), inp.state), result),
        (MeasureInput(dataclasses.replace(task, target=None), inp.state), result),  # type: ignore[arg-type]
        (MeasureInput(dataclasses.replace(task, workload_key=task), inp.state), result),  # type: ignore[arg-type]
    ]  # fmt: skip
    for pair in unheld:
        with pytest.raises(RecordError, match="asked to log a record of") as error:
            dump_record_to_string(*pair)
        assert len(str(error.value)) < 600
    with pytest.raises(RecordError, match=r"its version is the text 'v0\.7'"):
        write_line(LogRecord(inp, result, "v0.7"))


REFUSED = {
    "": "it is not JSON", "[]": "it is a list of 0", "3": "it is a number", LINE[:-1]: "it is not JSON", "{}": "it has no i, no r, no v",
    json.dumps({"i": [], "r": []}): "it has no v", LINE[:-1] + ', "t": []}': "it has the field the text 't'; fields are i, r, v",
    changed("v", to="v0.7"): "its version is the text 'v0.7'; v0.1 to v0.6 are read", changed("v", to=0.6): "its version is 0.6;",
    changed("v", to=[]): "its version is a list of 0", changed("i", to={}): "its input is an object, not [task, state]",
    changed("i", to=[[]]): "its input is a list of 1",
    changed("i", 0, to=[MATMUL]): "its task is a list of 1, not the first 2 to 6 of [", changed("i", 0, to=[MATMUL] * 7): "its task is a list of 7",
    changed("i", 0, 0, to=["matmul"]): "its workload_key is a list of 1, not a text", changed("i", 0, 1, to=None): "its target is null",
    changed("i", 0, 2, to=[8]): "its hardware_params is a list of 1, not 8 numbers",
    changed("i", 0, 2, 0, to=2**31): "one of its hardware_params is 2147483648",
    changed("i", 0, 2, 7, to=1.5): "one of its hardware_params is 1.5", changed("i", 0, 2, 3, to=True): "one of its hardware_params is a truth value",
    changed("i", 0, 3, to=None): "its target_host is null", changed("i", 0, 4, to=3): "its layout_rewrite_option is 3, not one of 0 to 2",
    changed("i", 0, 4, to="1"): "its layout_rewrite_option is the text '1'", changed("i", 0, 5, to="W"): "its task_input_names is a text",
    changed("i", 0, 5, 0, to=0): "its task_input_name is a number", changed("i", 1, to=[]): "its state is a list of 0, not [stages, steps]",
    changed("i", 1, 0, to=[1]): "its stages are a list of 1, not the empty list", changed("i", 1, 1, to={}): "its steps are an object",
    changed("i", 1, 1, 3, to=["AB", 0]): "it has a step of the kind the text 'AB'", changed("i", 1, 1, 3, to="CI"): "it has a text for a step",
    changed("r", to=[[1.0], 0]): "its result is a list of 2", changed("r", 0, to=[]): "it has no costs, and no error", changed("r", 0, to=[None]): "its costs",
    changed("r", 0, to=[-1.0]): "its costs", changed("r", 0, to=[True]): "its costs", changed("r", 0, to=[10**400]): "its costs",
    changed("r", 1, to=9): "its error_no is 9, not one of 0 to 8", changed("r", 1, to=0.0): "its error_no is 0.0",
    changed("r", 1, to=False): "its error_no is a truth value",
    changed("r", 2, to="x"): "its all_cost is the text 'x'", changed("r", 3, to=None): "its timestamp is null",
    LINE.replace("0.0044742", "NaN"): "it is not JSON (NaN", LINE.replace("0.0044742", "1e999"): "it is not JSON (1e999",
    LINE.replace("512", "9" * 5000): "it is not JSON", LINE.replace("[[], ", "[" * 100_000): "nested more than",
    LINE.replace('"llvm', "[" * DEEPEST + "]" * DEEPEST + ',"llvm'): "nested more than",
    " " * LONGEST + LINE: "it has 10",
}  # fmt: skip


@pytest.mark.parametrize("row, reason", REFUSED.items(), ids=list(REFUSED.values()))
def test_unusable_lines_give_a_reason(row: str, reason: str) -> None:
    with pytest.raises(RecordError) as error:
        read_line(row)
    found = str(error.value)
    assert found.startswith(f"asked to read a log line, but {reason}") or reason.startswith("nested") and reason in found
    assert len(found) < 400 and found.isprintable()


def test_every_truncated_line_gives_a_reason() -> None:
    for size in range(len(LINE)):
        with pytest.raises(RecordError):
            read_line(LINE[:size])


def _places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*path, key), *_places(item, (*path, key)))]


hostile = st.sampled_from([10**300, 10**4000, -(10**4000), 2**64, 2**31, 1e308, -1, "\x00\x1b[2J\ud800", "__import__('os').abort()", "🙂" * 9999, [[]] * 99])


@given(st.sampled_from(_places(json.loads(LINE))), json_values | hostile)
def test_any_changed_value_is_read_or_refused(path: tuple[str | int, ...], value: object) -> None:
    row = changed(*path, to=value)
    try:
        record = read_line(row)
    except RecordError as error:
        assert str(error).isprintable() and len(str(error)) < 400
    else:
        assert read_line(write_line(record)) == record and record.result.mean_cost >= 0


@given(st.text() | json_values.map(json.dumps) | st.builds(lambda i, r: json.dumps({"i": i, "r": r, "v": "v0.6"}), json_values, json_values))
def test_any_text_is_refused(row: str) -> None:
    with pytest.raises(RecordError) as error:
        read_line(row)
    assert str(error.value).isprintable()
