"""`--json`: one value on stdout, and nothing else there."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansor.cli import main
from ansor.commands.as_json import json_value
from ansor.measure.record import RecordFile, load
from ansor.targets.unit import SECONDS, cycles
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul
from tests.commands.record_files import recorded

SIZES = ["--args", "16,16,16"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    return recorded(tmp_path / "matmul.jsonl", SearchTask(matmul, (16, 16, 16), "cpu -threads=1"))


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    """What a command says. Nothing of it may need more than JSON has."""
    assert main([*arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@pytest.mark.compiler
def test_show(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "show", file)
    (target,) = found["targets"]
    (workload,) = target["workloads"]
    assert found["trials"] == workload["trials"] == 3 and target["target"].startswith("cpu -mcpu=native -threads=1 (") and found["left_out"] == {}
    assert workload["name"] == "matmul(16, 16, 16)" and workload["best"] == [{"unit": "seconds", "cost": 1e-3}] and workload["failures"] == {"compile": 1}


@pytest.mark.compiler
@pytest.mark.parametrize(("option", "form", "text"), [([], "loops", "for "), (["--source"], "source", "#include"), (["--passes"], "passes", "for ")])
def test_show_a_program(option: list[str], form: str, text: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = said(capsys, "show", file, "matmul", *SIZES, *option)["programs"]
    assert program["cost"] == 1e-3 and program["flop"] == 2 * 16**3 and text in program[form] and all(gene == 0 for gene in program["row"])


@pytest.mark.compiler
def test_show_says_which_device_of_a_farm_measured_a_program(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = said(capsys, "show", file, "matmul", *SIZES)["programs"]
    assert program["measured_by"] == ""
    loaded = load(file)
    with RecordFile(file, loaded.headers[0]) as records:
        for record in loaded.records:
            if record.costs:
                records.append(record._replace(costs=(record.cost / 2,), measured_by="local on host7 (a processor)"))
    (program,) = said(capsys, "show", file, "matmul", *SIZES)["programs"]
    assert program["measured_by"] == "local on host7 (a processor)"
    assert main(["show", file, "matmul", *SIZES]) == 0 and "measured by local on host7 (a processor)\n" in capsys.readouterr().out


@pytest.mark.compiler
def test_explain(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "explain", file, "matmul", *SIZES)
    (one,) = found["explained"]
    assert one["work"]["flop"] == 2 * 16**3 and one["trials"]["valid"] == 2 and one["trials"]["unit"] == "seconds" and found["others"] == 0
    assert one["best"]["measured"] == 1e-3 and one["rules"]["fired"]


@pytest.mark.compiler
def test_notes_go_to_stderr(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", file, "matmul", *SIZES, "--json"]) == 0
    heard = capsys.readouterr()
    assert "the target of all trials" in heard.err and heard.out.startswith("{")


@pytest.mark.compiler
def test_convert(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "convert", file, str(tmp_path / "log.json"), "matmul", *SIZES)
    assert (found["from"], found["to"]) == ("records", "auto_scheduler") and found["written"] + sum(one["count"] for one in found["left_out"]) == 3
    back = said(capsys, "convert", found["output"], str(tmp_path / "back.jsonl"), "matmul", *SIZES)
    assert (back["from"], back["to"]) == ("auto_scheduler", "records") and back["written"] == found["written"] > 0


@pytest.mark.compiler
def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "doctor", "--threads", "1")
    assert [one["name"] for one in found["findings"]] == ["target", "cache", "cost model", "compiler", "timer", "peak"]
    assert all(one["fine"] for one in found["findings"]) and found["version"]


def test_targets_and_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"cpu", "arm", "micro"} <= {one["name"] for one in said(capsys, "targets")["targets"]}
    options = {one["name"]: one for one in said(capsys, "targets", "cpu")["options"]}
    assert options["mcpu"]["default"] == "native" and options["threads"]["help"]
    assert "qemu-aarch64" in {one["name"] for one in said(capsys, "devices")["devices"]}


def test_learning_has_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--learn", "1", "--json"]) == 1
    assert "leave one of them out" in capsys.readouterr().err


@dataclass(frozen=True)
class Inner:
    value: float


def test_values() -> None:
    given = {"a": (Inner(1.5), Inner(math.inf)), "b": [SECONDS, cycles("M4")], 3: None, "d": math.nan, "e": True, "f": Path("x")}
    assert json_value(given) == {"a": [{"value": 1.5}, {"value": None}], "b": ["seconds", "cycles:M4"], "3": None, "d": None, "e": True, "f": "x"}
