"""A sketch as JSON, whole: the steps, and the table of each choice. `Sketch.to_json` has only a digest of the tables, as sketches of records are derived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ansor.ir.dag import Dag
from ansor.schedule.choice import Choice
from ansor.schedule.sketch import Sketch, schedule_json
from ansor.schedule.steps import step_from_json


def sketch_data(sketch: Sketch) -> dict[str, object]:
    """What `sketch_of` makes the sketch of again, for the same declaration."""
    return {"steps": schedule_json(sketch.steps), "choices": [_choice_data(one) for one in sketch.choices]}


def sketch_of(dag: Dag, data: Mapping[str, Any]) -> Sketch:
    """The sketch of a declaration that `sketch_data` wrote. Raises ScheduleError, LookupError, TypeError or ValueError for anything else."""
    return Sketch(dag, tuple(map(step_from_json, data["steps"])), tuple(map(_choice_of, data["choices"])))


def _choice_data(choice: Choice) -> dict[str, object]:
    weights = None if choice.weights is None else choice.weights.tolist()
    return {"name": choice.name, "table": choice.table.tolist(), "parts": choice.table.shape[1], "kind": choice.kind, "weights": weights,
            "extent": choice.extent, "numbers": choice.numbers}  # fmt: skip


def _choice_of(data: Mapping[str, Any]) -> Choice:
    table = np.asarray(data["table"], np.int64).reshape(-1, data["parts"])
    weights = None if data["weights"] is None else np.asarray(data["weights"], np.float64)
    return Choice(data["name"], table, data["kind"], weights, data["extent"], tuple((name, count) for name, count in data["numbers"]))
