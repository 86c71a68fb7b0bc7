"""Every field of a record file beside every kind of wrong value: such a line is left out with a reason, and costs nothing but itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansor.errors import RecordError
from ansor.measure.failure import Failure
from ansor.measure.record import DAMAGED_HEADER, TORN, Comparison, Header, Record, RecordFile, header_line, load, record_line
from ansor.measure.record_fields import MACHINE, NEITHER, damaged
from ansor.targets.unit import INSTRUCTIONS, SECONDS

HEADER = Header("zig cc 0.17.0", ("-O3",), 7, "0.1.0", (("processor", "test"), ("cores", "2")), 1.5)
GOOD = Record("matmul", "cpu", (("SP", 0, (4, 8)),), (1, 2, 3), (0.25, 0.5), None, False, 0.1, 12.5, 7, 3)
FAILED = GOOD._replace(costs=(), failure=Failure("crash", "SIGSEGV"))
ELSEWHERE = GOOD._replace(
    unit=INSTRUCTIONS, device="qemu-aarch64", costs=(1.5e9, 2e12), measured_by="local on host7",
    counters=(("stack_bytes_used", 512.0), ("wire_bytes_sent", 0.0)),
)  # fmt: skip
COMPARED = Comparison("matmul", "cpu", "torch 2.9", "abc", 0.5, 0.25, True, 12.5)

TEXTS = ['"x"', '"\\ud800"', '"\\u001b[2J"', '""']
OTHERS = ["null", "true", "{}", "[]", "[[]]", "[null]", "[true]", '["1"]', "[{}]", '{"a":[1]}']
NUMBERS = ["0", "-1", "1", "1.5", "-0.5", "1e-300", "1e300", "1e400", "-1e400", "NaN", "Infinity", "9" * 400]
LISTS = [f"[{number}]" for number in NUMBERS] + ["[0.5,NaN]", "[NaN,0.5]", "[0.5,true]", "[0.5,-0.5]", "[1,[1]]"]
VALUES = [*TEXTS, *OTHERS, *NUMBERS, *LISTS, '{"kind":"crash","text":5}', '{"kind":"explosion","text":""}', '{"kind":[],"text":""}', '{"text":""}']

TRIAL_FIELDS = [
    "workload", "target", "algorithm", "sketch", "row", "seconds", "failure", "cut_short", "elapsed", "timestamp", "seed", "round", "counters", "measured_by",
]  # fmt: skip
HEADER_FIELDS = ["format", "package", "started", "machine", "compiler", "flags", "seed"]
COMPARISON_FIELDS = ["workload", "target", "library", "program", "ours_s", "library_s", "library_chosen", "timestamp"]


def with_field(line: bytes, name: str, value: str, inside: str = "") -> bytes:
    """The line with another text in the place of a field's value, written as we write lines."""
    fields = json.loads(line)
    (fields[inside] if inside else fields)[name] = "\0"
    keys = list(fields)
    if name == "algorithm":  # comes before the sketch
        fields = {key: fields[key] for key in ["workload", "target", "algorithm", *keys[2:]]}
    return json.dumps(fields, separators=(",", ":")).replace('"\\u0000"', value).encode() + b"\n"


def read_between(tmp_path: Path, line: bytes) -> tuple[int, int, int]:
    """Records, comparisons and lines left out of a file that has the line between good ones."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(header_line(HEADER) + record_line(GOOD) + line + record_line(FAILED))
    loaded = load(path)
    assert loaded.records[0] == GOOD and loaded.records[-1] == FAILED and len(loaded.headers) in (1, 2)
    for record in loaded.records:
        assert all(type(gene) is int and gene >= 0 for gene in record.row) and bool(record.costs) is (record.failure is None)
        assert all((1e-10 <= cost <= 1e5 if record.unit == SECONDS else 0 < cost <= 1e18) for cost in record.costs) and record.elapsed >= 0 <= record.timestamp
        hash((record.workload, record.target, record.algorithm, record.row))
    return len(loaded.records) - 2, len(loaded.comparisons), sum(loaded.skipped.values())


@pytest.mark.parametrize("field", TRIAL_FIELDS)
@pytest.mark.parametrize("base", [GOOD, FAILED])
def test_a_trial_is_whole_or_left_out(tmp_path: Path, base: Record, field: str) -> None:
    counts = {value: read_between(tmp_path, with_field(record_line(base), field, value)) for value in VALUES}
    assert all(records + left == 1 for records, _, left in counts.values())
    if field != "sketch":  # which is any list: what it means is asked where the sketches are known
        assert sum(left for _, _, left in counts.values()) >= len(VALUES) - 12


@pytest.mark.parametrize("field", [*(name for name in TRIAL_FIELDS if name not in ("seconds", "algorithm")), "costs", "device", "unit"])
def test_a_trial_of_another_device_is_whole_or_left_out(tmp_path: Path, field: str) -> None:
    for value in [*VALUES, '"seconds:1"', '"cycles:"', '"ticks:nan Hz"']:
        records, _, left = read_between(tmp_path, with_field(record_line(ELSEWHERE), field, value))
        assert records + left == 1
        assert left or field not in ("costs", "unit") or value in ("[1]", "[1.5]", "[1e-300]")


@pytest.mark.parametrize("field", HEADER_FIELDS)
def test_a_header_is_one_line(tmp_path: Path, field: str) -> None:
    for value in VALUES:
        line = with_field(header_line(HEADER), field, value, "header")
        if field == "format" and value == "9" * 400:
            with pytest.raises(RecordError, match="of format 99999999999999999999, but"):
                read_between(tmp_path, line)
            continue
        records, _, left = read_between(tmp_path, line)
        assert records == 0 and left <= 1


@pytest.mark.parametrize("field", COMPARISON_FIELDS)
def test_a_comparison_is_whole_or_left_out(tmp_path: Path, field: str) -> None:
    path = tmp_path / "c.jsonl"
    with RecordFile(path, HEADER) as file:
        file.append_comparison(COMPARED)
    line = path.read_bytes().splitlines()[1]
    for value in VALUES:
        _, compared, left = read_between(tmp_path, with_field(line, field, value, "comparison"))
        assert compared + left == 1


REASONS = [
    ("row", '["1"]', damaged("row")), ("row", "[1.5]", damaged("row")), ("row", "[true]", damaged("row")), ("row", "[-1]", damaged("row")),
    ("seconds", "[-1.0]", damaged("seconds")), ("seconds", "[1e-300]", damaged("seconds")), ("seconds", "[0.0]", damaged("seconds")),
    ("seconds", "[1e400]", damaged("seconds")), ("seconds", "[1e6]", damaged("seconds")), ("seconds", '"0.5"', damaged("seconds")),
    ("seconds", "[]", NEITHER), ("workload", "[1]", damaged("workload")), ("algorithm", "{}", damaged("algorithm")),
    ("failure", '{"kind":"crash","text":""}', NEITHER), ("failure", '{"kind":"explosion","text":""}', damaged("failure")),
    ("elapsed", "-1", damaged("elapsed")), ("timestamp", "Infinity", damaged("timestamp")), ("round", "-1", damaged("round")),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "reason"), REASONS)
def test_the_reason_names_the_field(tmp_path: Path, field: str, value: str, reason: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(record_line(GOOD) + with_field(record_line(GOOD), field, value))
    assert load(path).skipped == {reason: 1}


def test_a_field_that_comes_twice_is_checked_as_it_counts(tmp_path: Path) -> None:
    for twice in (b'"row" :["x"]', b'"r\\u006fw":[[1]]', b'"seconds":["x"]', b'"seconds":[-1.0]', b'"row" :{"a":1}', b'"row" :[1.5]'):
        assert read_between(tmp_path, record_line(GOOD)[:-2] + b"," + twice + b"}\n") == (0, 0, 1)


def test_lines_written_by_hand_count(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    line = record_line(GOOD).decode()
    head, _, tail = line.partition(',"row":')
    spaced = json.dumps(json.loads("{" + f'"row":{tail}'))[len('{"row":') :]
    path.write_text(f'{line}{head},"row":{spaced}\n')
    assert load(path).records == (GOOD, GOOD)


OLD_TROUBLE = [
    Failure("compile", "error: unable to create compilation: ProcessFdQuotaExceeded"), Failure("compile", "/tmp/x.o: No space left on device"),
    Failure("compile", "gcc: fatal error: Killed signal terminated program cc1"), Failure("compile", "LLVM ERROR: out of memory"),
    Failure("crash", "the measuring process was lost: it ended with code 1"), Failure("reference", "the reference did not build: compile: OutOfMemory"),
    Failure("memory", "SIGKILL (Killed)"), Failure("load", "/x/k.so: file too short"),
]  # fmt: skip
OWN_FAULTS = [
    Failure("compile", "error: use of undeclared identifier"), Failure("crash", "SIGSEGV; it said: out of memory"),
    Failure("timeout", "still running after 5 s"),
    Failure("memory", "SIGABRT after an allocation was refused"), Failure("wrong_answer", "no space left on device"),
]  # fmt: skip


def test_what_older_versions_blamed_on_programs_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(record_line(FAILED._replace(failure=failure)) for failure in OLD_TROUBLE + OWN_FAULTS))
    loaded = load(path)
    assert [record.failure for record in loaded.records] == OWN_FAULTS and loaded.skipped == {MACHINE: len(OLD_TROUBLE)}


def test_headers_older_than_the_format_and_of_wrong_kinds(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for value in ("0", "-3", "1e400", "1.5", '"1"', "true"):
        path.write_bytes(with_field(header_line(HEADER), "format", value, "header") + record_line(GOOD))
        assert load(path).records == (GOOD,) and load(path).skipped == {DAMAGED_HEADER: 1}
        RecordFile(path, HEADER).close()
    path.write_bytes(b'{"header":5}\n' + record_line(GOOD))
    assert load(path).skipped == {TORN: 1}
