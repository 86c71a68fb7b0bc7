"""What the entry points take by name: one sentence for a name they do not have, and one value of all others."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import ansor
from ansor import api
from ansor.errors import AnsorError, ArgumentTypeError, BudgetError
from ansor.run.keywords import ModelKeywords, RunOptions, TuningKeywords
from ansor.targets.base import parse_target
from ansor.tasks.arguments import check_names

ENTRIES: dict[str, Any] = {"auto_schedule": api.ScheduleKeywords, "compile": api.CompileKeywords, "tune_tasks": ModelKeywords}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_unknown_name_is_told_with_what_there_is(entry: str) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"^asked {entry} for trails=3, which it does not take \(did you mean trials\?\); .*early_stop"):
        getattr(ansor, entry)(object(), (), trails=3)
    with pytest.raises(TypeError, match="asked"):  # what Python itself raises for them
        check_names(entry, {"nothing_like_it": 1}, ENTRIES[entry])


def test_options_of_the_target_are_told_to_belong_there() -> None:
    with pytest.raises(ArgumentTypeError, match=r'compile for threads=1, .* not take: write target="cpu -threads=1"; by name it takes .*, target, '):
        ansor.compile(object(), (), threads=1)  # type: ignore[call-arg]
    with pytest.raises(ArgumentTypeError, match=r'auto_schedule for vector_bytes=16, .*: write target="cpu -vector-bytes=16"'):
        ansor.auto_schedule("matmul", vector_bytes=16)  # type: ignore[call-arg]
    with pytest.raises(ArgumentTypeError, match=r"tune_tasks for threads=1, which it does not take \(did you mean"):
        ansor.tune_tasks([], threads=1)  # type: ignore[call-arg]


def test_the_cost_model_has_another_name_where_model_is_a_network() -> None:
    with pytest.raises(ArgumentTypeError, match=r"asked auto_schedule for cost_model='package', which it does not take \(it calls this model=\)"):
        ansor.auto_schedule("matmul", cost_model="package")  # type: ignore[call-arg]
    with pytest.raises(ArgumentTypeError, match=r"export for model='package', which it does not take \(it calls this cost_model=\)"):
        check_names("export", {"model": "package"}, api.ExportKeywords)
    with pytest.raises(ArgumentTypeError, match=r"asked compile for model='package', which it does not take beside a network; it calls the cost model cost_m"):
        ansor.compile(object(), (), model="package")  # type: ignore[misc]


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_name_is_described_and_the_signature_is_short(entry: str) -> None:
    function = getattr(ansor, entry)
    text = function.__doc__
    assert all(name in text for name in ENTRIES[entry].__optional_keys__)
    assert len(inspect.signature(function).parameters) <= 4


def test_without_a_budget_nothing_is_measured_and_it_is_known_that_nobody_asked() -> None:
    none, zero, some = RunOptions.of({}), RunOptions.of({"trials": 0}), RunOptions.of({"minutes": 1.0})
    assert (none.measures, none.given) == (False, False) and (zero.measures, zero.given) == (False, True) and (some.measures, some.given) == (True, True)
    assert some.budget.seconds == 60.0 and some.budget.min_gain > 0
    with pytest.raises(BudgetError, match="without a budget"):
        RunOptions.of({}, needs_budget=True)


def test_the_value_holds_what_was_asked() -> None:
    asked = RunOptions.of({"trials": 8, "records": "r.jsonl", "seed": 3, "early_stop": 4})
    assert asked.budget.trials == 8 and asked.records == Path("r.jsonl") and (asked.search.seed, asked.search.early_stop) == (3, 4)


@pytest.mark.parametrize("wrong", [{"records": 5}, {"seed": "a"}, {"timing": 3}, {"early_stop": 0}, {"report": 5}, {"on_progress": 5}, {"trials": -1}])
def test_kinds_are_looked_at_first(wrong: TuningKeywords) -> None:
    with pytest.raises(AnsorError, match="^asked "):
        RunOptions.of({"trials": 1, **wrong})


@pytest.mark.parametrize(("wrong", "told"), [
    ("locl", r"'locl' \(did you mean local\?\)"), (["local", "local"], "local twice"), ([], "no device"), (5, "whose name is 'missing'"),
    ({"cpu -threads=2": "local"}, "which has no tasks"),
])  # fmt: skip
def test_devices_are_looked_at_before_anything_is_read(wrong: Any, told: str) -> None:
    def unread(*_: object) -> None:
        pytest.fail("read the model first")

    for call in (ansor.compile, ansor.compile_int8, ansor.compile_batches):
        with pytest.raises(AnsorError, match=told):
            call(unread, (), "cpu -threads=1", trials=4, devices=wrong)
    with pytest.raises(AnsorError, match=told):
        ansor.auto_schedule("matmul", (8, 8, 8), "cpu -threads=1", trials=4, devices=wrong)
    RunOptions.of({"trials": 0, "devices": wrong}).check_devices([parse_target("cpu -threads=1")])  # nothing is measured


def test_ctrl_c_outside_the_measurements_says_what_is_kept(tmp_path: Path) -> None:
    records = tmp_path / "r.jsonl"
    asked = RunOptions.of({"trials": 4, "records": records})
    kept = f"trials are in {records}: run this again to continue"
    for before, during, said in (("", "", ""), ("1", "", f"before measuring began; earlier {kept}"), ("1", "2", f"after measuring ended; its {kept}")):
        records.write_text(before)
        with pytest.raises(KeyboardInterrupt) as stopped, asked.reporter(parse_target("cpu -threads=1")):
            records.write_text(before + during)
            raise KeyboardInterrupt
        assert str(stopped.value) == said and stopped.value.__cause__ is None, "one traceback"
    with pytest.raises(KeyboardInterrupt, match="^before the first$"), asked.reporter(parse_target("cpu -threads=1")):
        raise KeyboardInterrupt("before the first")
