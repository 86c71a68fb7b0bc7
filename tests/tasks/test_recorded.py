"""What of a record file counts, and which lines about the rest are warnings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ansor
from ansor import te
from ansor.api import tune
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler, processor_name
from ansor.errors import AnsorWarning
from ansor.measure.machine_identity import compiler_identity, processor_identity
from ansor.measure.record import Record, RecordFile, make_header
from ansor.measure.record_target import difference, record_target
from ansor.run.choosing import recorded_state, say_unused
from ansor.tasks.recorded import OTHER_NAMES, recorded_outcomes
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.te.workloads import matmul
from ansor.zoo import operators

ONE, TWO = (SearchTask(matmul, (16, 16, 16), f"cpu -threads={threads}") for threads in (1, 2))


def recorded(path: Path, task: SearchTask, target: str = "") -> None:
    space = task.spaces[0]
    with RecordFile(path, make_header(CToolchain(find_compiler()))) as file:
        file.append(Record(task.workload_key, target or record_target(task.target), json.loads(space.name), (0,) * len(space.sizes), (1e-3,)))


def told(path: Path, task: SearchTask) -> tuple[list[str], list[str]]:
    """Lines, and those that must be seen."""
    lines, alarms = list[str](), list[str]()
    say_unused([recorded_state(task, path)], path, lines.append, alarms.append)
    return lines, alarms


def test_records_for_other_threads_are_no_alarm(tmp_path: Path) -> None:
    recorded(tmp_path / "r.jsonl", ONE)
    recorded(tmp_path / "r.jsonl", TWO)
    for task, other in ((ONE, TWO), (TWO, ONE)):
        (line,), alarms = told(tmp_path / "r.jsonl", task)
        assert line.endswith(f"1 record left out: made for another target ({other.target}, here {task.target})") and not alarms


def test_it_must_be_seen_where_nothing_counts(tmp_path: Path) -> None:
    recorded(tmp_path / "r.jsonl", ONE)
    lines, (alarm,) = told(tmp_path / "r.jsonl", TWO)
    assert not lines and "1 record left out: made for another target" in alarm


HERE = processor_identity()
KIND, COMPILER = HERE.partition(", features ")[0], compiler_identity(find_compiler().version)
MACHINES = {
    f"({HERE}, zig cc 0.9)": f"made with zig cc 0.9, here {COMPILER}",
    f"({processor_name()}, zig cc 0.9.1)": f"made with zig cc 0.9, here {COMPILER}",
    f"(Acme family 1 model 2, features 0123abcd, caches 32K, {COMPILER})": f"made on another processor: Acme family 1 model 2, here {KIND}",
    f"(Acme Turbo 9000, {COMPILER})": f"made on another processor: Acme Turbo 9000, here {processor_name()}",
    "(Acme, gcc (Debian 12.2.0-14) 12.2.0)": f"made on another processor: Acme, here {processor_name()}, and with gcc 12.2, here {COMPILER}",
    f"({KIND}, features 0123abcd, caches 1K, {COMPILER})": f"made on a processor of this model ({KIND}) with different instructions",
    "(logged: llvm -keys=cpu)": "times from a log (llvm -keys=cpu)",
    "": "made on an unnamed machine",
}


@pytest.mark.parametrize("machine", MACHINES)
def test_what_differs_is_said_in_a_few_words(tmp_path: Path, machine: str) -> None:
    recorded(tmp_path / "r.jsonl", ONE)
    recorded(tmp_path / "r.jsonl", ONE, f"{ONE.target} {machine}".strip())
    lines, (alarm,) = told(tmp_path / "r.jsonl", ONE)
    assert not lines and alarm.endswith(f"1 record left out: {MACHINES[machine]}")


def test_other_caches_are_told() -> None:
    without = HERE.partition(", caches ")[0]
    assert "on a processor with different caches: 7K 8K, here " in difference(f"{ONE.target} ({without}, caches 7K 8K, {COMPILER})", ONE.target)


def product(i: str = "i", k: str = "k", c: str = "C") -> list[Tensor]:
    """A matrix product with names of one's own."""
    a, b = te.placeholder((16, 16), name="left"), te.placeholder((16, 16), name="right")
    inner = te.reduce_axis((0, 16), name=k)
    body = eval(f"lambda {i}, j: te.sum(a[{i}, inner] * b[inner, j], axis=inner)", {"te": te, "a": a, "b": b, "inner": inner})
    return [a, b, te.compute((16, 16), body, name=c)]


@pytest.mark.parametrize("names", [{"i": "y"}, {"k": "r"}, {"c": "product"}, {"i": "rows", "k": "inner", "c": "D"}])
def test_other_names_are_told(tmp_path: Path, names: dict[str, str]) -> None:
    task, renamed = (SearchTask(product, args, "cpu -threads=1") for args in ((), tuple({"i": "i", "k": "k", "c": "C", **names}.values())))
    assert task.workload_key == renamed.workload_key
    recorded(tmp_path / "r.jsonl", task)
    assert told(tmp_path / "r.jsonl", task) == ([], [])
    assert told(tmp_path / "r.jsonl", renamed)[1][0].endswith(f"1 record left out: {OTHER_NAMES}")


def test_sketches_of_other_tables_and_steps_are_not_called_renamed(tmp_path: Path) -> None:
    task = SearchTask(product, (), "cpu -threads=1")
    for old, new in (('["choices","', '["choices","0'), ('["CHW"', '["XX"')):
        (tmp_path / "r.jsonl").unlink(missing_ok=True)
        with RecordFile(tmp_path / "r.jsonl", make_header(CToolchain(find_compiler()))) as file:
            for space in task.spaces:
                file.append(Record(task.workload_key, record_target(task.target), json.loads(space.name), (0,) * len(space.sizes), (1e-3,)))
        (tmp_path / "r.jsonl").write_text((tmp_path / "r.jsonl").read_text().replace(old, new))
        assert set(recorded_outcomes(task, tmp_path / "r.jsonl").left_out) == {"sketches of rules that are not here (another version's, or your own)"}


def test_the_example_of_the_readme_shares_the_records_of_the_command() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    start = text.index("def matmul(n, m, k):")
    names: dict[str, Any] = {"te": te}
    exec(text[start : text.index("\n\n", start)], names)
    ours, builtin = (SearchTask(function, (64, 48, 32), "cpu -threads=1") for function in (names["matmul"], operators.matmul))
    assert ours.workload_key == builtin.workload_key and [space.name for space in ours.spaces] == [space.name for space in builtin.spaces]


def test_records_of_targets_in_the_same_run_are_not_left_out(tmp_path: Path) -> None:
    path, one, two, other = tmp_path / "r.jsonl", str(ONE.target), str(TWO.target), "cpu -mcpu=znver3 -threads=2"
    for target in (record_target(ONE.target), record_target(TWO.target), f"{other} (gcc 12.2)"):
        recorded(path, ONE, target)
    found = recorded_outcomes(ONE, path)
    assert set(found.left_out) == {f"made for another target ({target}, here {one})" for target in (two, other)}
    assert found.without([one, two]).left_out == {f"made for another target ({other}, here {one})": 1}
    assert found.without([one, two]).known == found.known and found.without(()) == found


def test_records_that_do_not_exist_are_told_where_nothing_is_measured(tmp_path: Path) -> None:
    with pytest.warns(AnsorWarning, match=r"there is no record file .*nofile\.jsonl, so the model picks the programs; check the path"):
        ansor.auto_schedule(matmul, (16, 16, 16), "cpu -threads=1", records=tmp_path / "nofile.jsonl")
    with pytest.warns(AnsorWarning, match=r"there is no record file .*nofile\.jsonl"):
        tune(ONE, ansor.TuningOptions(measure_callbacks=[ansor.RecordToFile(str(tmp_path / "nofile.jsonl"))], verbose=0))
