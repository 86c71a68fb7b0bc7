"""A file with every kind of damage in every field, read by every command: no traceback, what is whole counts, and what is not is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ansor
from ansor.api import apply_best
from ansor.cli import main
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.errors import AnsorWarning
from ansor.measure.failure import Failure
from ansor.measure.record import FORMAT, Record, RecordFile, header_line, load, make_header, record_line
from ansor.measure.record_target import record_target
from ansor.tasks.recorded import recorded_outcomes
from ansor.zoo.operators import matmul

VALUES = [
    '"x"', '"\\ud800"', '"\\u001b[2J"', "null", "true", "{}", "[]", "[[]]", "[null]", "[true]", '["1"]', '[{"a":1}]', "0", "-1", "1e-300", "1e400", "-1e400",
    "NaN", "[0]", "[-1]", "[1.5]", "[1e-300]", "[1e400]", "[NaN]", "[9999999999]", "[1,[1]]", '{"kind":[],"text":5}', '{"kind":"crash","text":null}',
]  # fmt: skip
TASK = ansor.SearchTask(matmul, (16, 16, 16), "cpu -threads=1")


def trial(seconds: tuple[float, ...] = (0.5,), row: tuple[int, ...] | None = None) -> Record:
    """A trial of the first sketch; a failure without seconds."""
    space = TASK.spaces[0]
    steps = json.loads(space.name)
    return Record(
        TASK.workload_key, record_target(TASK.target), steps, (0,) * len(space.sizes) if row is None else row, seconds,
        None if seconds else Failure("crash", "SIGSEGV"), elapsed=0.1, timestamp=1.0,
    )  # fmt: skip


def damaged() -> list[bytes]:
    """Lines with one field of another value, each."""
    lines = []
    for base in (trial(), trial(())):
        text = record_line(base).decode()
        for field in json.loads(text):
            start = text.rindex(f'"{field}":') + len(field) + 3
            end = start + len(json.dumps(json.loads(text)[field], separators=(",", ":")))
            lines += [f"{text[:start]}{value}{text[end:]}" for value in VALUES]
        lines += [text.replace(',"sketch"', f',"algorithm":{value},"sketch"') for value in VALUES]
    size = len(TASK.spaces[0].sizes)
    lines += [record_line(trial(row=row)).decode() for row in ((), (0,) * (size + 1), (10**9,) * size)]
    header = header_line(make_header(CToolchain(find_compiler()))).decode()
    lines += [header.replace(f'"format":{FORMAT}', f'"format":{value}') for value in VALUES]
    start, end = header.index('"machine":'), header.index(',"compiler"')
    lines += [f'{header[:start]}"machine":{value}{header[end:]}' for value in VALUES]
    return [line.encode() for line in lines]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("damaged") / "r.jsonl"
    with RecordFile(found, make_header(CToolchain(find_compiler()))) as file:
        file.append(trial())
    with found.open("ab") as lines:
        lines.write(b"".join(damaged()) + record_line(trial((0.25,))))
    return found


def test_what_is_whole_counts(path: Path) -> None:
    found = recorded_outcomes(TASK, path)
    assert len(damaged()) > 700 and sum(load(path).skipped.values()) > 450
    assert min(outcome.cost for outcome, _ in found.known if outcome.cost is not None) == 0.25
    assert {reason.partition(" (")[0] for reason in found.left_out} >= {"made for another target", "the sketch has no such row"}


COMMANDS = [
    "compare {path} {path}", "compare {path} {path} --json",
    "show {path}", "show {path} matmul --args 16,16,16 --threads 1", "explain {path} matmul --args 16,16,16 --threads 1",
    "report {path} -o {folder}/r.html", "report {path} --against {path} --of matmul --args 16,16,16 --threads 1 -o {folder}/r.html",
    "convert {path} {folder}/out.json matmul --args 16,16,16", "record --mode pick --i {path} --o {folder}/best.jsonl", "record --i {path}",
    "record --mode split --i {path}",
    pytest.param("compile matmul --args 16,16,16 --threads 1 --records {path}", marks=pytest.mark.compiler),
    pytest.param("tune matmul --args 16,16,16 --threads 1 --trials 2 --records {path}", marks=pytest.mark.compiler),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_uses_the_rest_and_says_what_is_left_out(path: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    status = main(command.format(path=path, folder=tmp_path).split())
    said = capsys.readouterr()
    assert status == 0, said.out + said.err
    assert "left out" in (said.out + said.err).replace("_", " ") or "pick" in command or "split" in command
    assert "\x1b" not in said.out.replace("\x1b[1m", "") and path.read_bytes() == before


@pytest.mark.compiler
def test_in_python_it_is_a_warning(path: Path) -> None:
    with pytest.warns(AnsorWarning, match=r"r\.jsonl: \d+ records left out: .*damaged line: row is not .* \(\d+\)"):
        kernel = ansor.auto_schedule(matmul, (16, 16, 16), "cpu -threads=1", records=path)
    assert kernel.latency_s == 0.25
    with pytest.warns(AnsorWarning, match="records left out"):
        apply_best(TASK, path)
    said: list[str] = []
    ansor.auto_schedule(matmul, (16, 16, 16), "cpu -threads=1", trials=2, records=path, report=said.append)
    assert any("records left out" in line for line in said)
