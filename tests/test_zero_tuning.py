import math
import subprocess
import sys

import numpy as np
import pytest

from ansor.cost_model.random_model import RandomModel
from ansor.schedule.sketch import Rows
from ansor.sketch_space import SketchSpace
from ansor.task import SearchTask
from ansor.te import workloads
from ansor.te.tensor import Tensor
from ansor.zero_tuning import least_regret, pick

pytestmark = [pytest.mark.compiler, pytest.mark.lightgbm]
TARGET = "cpu -mcpu=znver3 -threads=1"


def matmul() -> list[Tensor]:
    return workloads.matmul(64, 64, 64)


def test_the_choice_is_legal_and_the_same_in_any_process() -> None:
    task = SearchTask(matmul, target=TARGET)
    choice = pick(task)
    (space,) = (space for space in task.spaces if space.sketch is choice.program.sketch)
    assert space.legal(np.array([choice.program.row]))[0] and math.isinf(choice.program.seconds) and 0 <= choice.confidence <= 1
    program = (
        "from ansor.task import SearchTask; from ansor.te import workloads; from ansor.zero_tuning import pick; "
        f"print(pick(SearchTask(workloads.matmul, (64, 64, 64), {TARGET!r})).program.row)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(choice.program.row)


def test_it_is_far_better_than_a_program_at_random() -> None:
    task = SearchTask(matmul, target=TARGET)
    chosen = pick(task).program
    space = next(space for space in task.spaces if space.sketch is chosen.sketch)
    features = space.features(np.array([chosen.row]))
    cycles = float(features.sums(np.exp(features.prior_logs()))[0])
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, size, 200) for size in space.sizes], axis=1)
    drawn = space.features(rows)
    assert cycles < np.median(drawn.sums(np.exp(drawn.prior_logs()))) / 4


def test_where_nothing_is_known_the_estimate_chooses() -> None:
    task = SearchTask(matmul, target=TARGET)
    choice = pick(task, RandomModel())
    assert choice.confidence == 0 and choice.by.startswith("the estimate")


def test_where_no_program_is_legal_the_declaration_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(space: SketchSpace, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.zeros(len(rows), np.bool_)

    monkeypatch.setattr(SketchSpace, "legal", none)
    task = SearchTask(matmul, target=TARGET)
    choice = pick(task)
    assert choice.program.sketch is task.spaces[0].sketch and set(choice.program.row) <= {0} and choice.confidence == 0
    assert choice.by == "the declaration as it is: no program is legal"


def test_many_sketches_are_looked_at_by_family() -> None:
    task = SearchTask(workloads.conv2d_nchw_bn_relu, (1, 14, 14, 16, 16, 3, 1, 1), TARGET)
    choice = pick(task)
    described = [space for space in task.spaces if "_recorded" in vars(space)]
    assert choice.program.sketch in [space.sketch for space in described] and len(described) < len(task.spaces)


def test_the_least_regret() -> None:
    place, regret = least_regret(np.log([[1.0, 0.5, 0.2], [0.9, 0.8, 0.1]]))
    assert (place, regret) == (0, 0.0), "both have the same favourite"
    place, regret = least_regret(np.log([[1.0, 0.7, 0.2], [0.1, 0.8, 0.9]]))  # neither favourite: the other judge finds it bad
    assert place == 1 and regret == pytest.approx(math.log(1 / 0.7))
    assert least_regret(np.log([[0.2, 0.4]])) == (1, math.inf)
