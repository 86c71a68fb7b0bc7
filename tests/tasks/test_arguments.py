"""Arguments of a wrong kind: a sentence at once, whatever entry point they are given to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ansor
from ansor import api, te
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.pretrained import pretrained
from ansor.cost_model.random_model import RandomModel
from ansor.errors import AnsorError, ArgumentError
from ansor.measure.record import load
from ansor.measure.timing import TimingOptions
from ansor.rules.add_rfactor import AddRfactor
from ansor.targets.base import parse_target
from ansor.tasks.arguments import check_arguments
from ansor.tasks.task import SearchTask

WRONG: dict[str, list[object]] = {
    "args": [3, "ab", b"ab", None],
    "rules": ["always_inline", 3],
    "algorithms": ["winograd", 3],
    "templates": [3, "conv"],
    "pins": [3],
    "records": [5, b"r.jsonl"],
    "seed": ["a", -1, 0.5, None, True],
    "early_stop": ["a", 0, -1],
    "model": ["x", RandomModel, object()],
    "timing": [3, {}],
    "report": [5, None],
    "on_progress": [5],
    "on_tasks": [5],
}


def vector(n: int) -> list[te.Tensor]:
    a = te.placeholder((n,), name="a")
    return [a, te.compute((n,), lambda i: a[i] + 1, name="b")]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_cannot_be_meant_is_told(name: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=f"^asked for {name}=.*; give "):
        check_arguments(**{name: value})


@pytest.mark.parametrize("target", ["cpu -threads=1", "llvm", parse_target("cpu -mcpu=haswell -threads=1")])
def test_a_target_in_the_place_before_it_is_told(target: Any) -> None:
    for asked in (
        lambda: ansor.auto_schedule(vector(4), target), lambda: SearchTask(vector(4), target), lambda: ansor.compile("x.onnx", target),
        lambda: ansor.extract_tasks("x.onnx", target), lambda: ansor.compile_batches("x.onnx", target), lambda: ansor.compile_int8("x.onnx", target),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"^asked for \w+='{target}', which is a target; pass it by name, as target='{target}'$"):
            asked()


def test_what_can_be_meant_passes() -> None:
    for model in (None, RandomModel(0), LightGBMModel(), pretrained()):
        check_arguments(model=model)
    check_arguments(records=Path("r"), seed=np.int64(3), early_stop=1, timing=TimingOptions(), report=print, args=np.array([1]), rules={}.keys(), algorithms=())
    check_arguments(records=None, early_stop=None, timing=None, rules=None, algorithms=None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"records": 5}, {"seed": "a"}, {"model": "x"}, {"timing": 3}, {"early_stop": 0}, {"report": 5}, {"on_progress": 5}, {"args": 3}, {"rules": [3]},
        {"rules": [AddRfactor]}, {"algorithms": [3]}, {"algorithms": [[3]]}, {"target": 5}, {"pins": 3}, {"templates": 3},
    ],
)  # fmt: skip
def test_an_operator_says_so(wrong: dict[str, Any]) -> None:
    with pytest.raises(AnsorError, match="asked for"):
        api.auto_schedule(vector, **{"args": (8,), "trials": 1, **wrong})


@pytest.mark.parametrize("wrong", [{"records": 5}, {"seed": -1}, {"report": 5}, {"on_tasks": 5}])
def test_a_network_says_so_before_it_is_read(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="asked for"):
        api.compile(object(), (), **wrong)


@pytest.mark.compiler
def test_whole_numbers_may_be_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ansor.auto_schedule(vector, np.array([8]), "cpu -threads=1", trials=np.int64(2), seed=np.int64(3), records=path)  # type: ignore[arg-type]
    assert load(path).records


def test_it_is_said_before_a_compiler_is_looked_for() -> None:
    with pytest.raises(ArgumentError, match="asked for seed='a'"):
        ansor.auto_schedule(vector, (8,), "cpu -threads=1 -cc=no-such-compiler", trials=1, seed="a")  # type: ignore[arg-type]


def test_several_tasks_say_so() -> None:
    with pytest.raises(ArgumentError, match="asked for records=5"):
        api.tune_tasks([SearchTask(vector, (8,))], trials=1, records=5)  # type: ignore[arg-type]
