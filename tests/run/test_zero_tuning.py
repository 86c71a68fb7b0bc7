import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.cost_model.feature_table import WIDTH
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import pretrained
from ansor.cost_model.random_model import RandomModel
from ansor.cost_model.training_set import estimated_scores
from ansor.dataset.layers import int8_conv2d, int8_dense
from ansor.ir.feature_rows import FeatureRows
from ansor.ir.tape import Recorder
from ansor.run.zero_tuning import (
    DESCRIBED,
    ESTIMATED,
    _combinations,
    _combines,
    _differences,
    _family,
    _in_turn,
    _kept_stages,
    _opinions,
    _promising,
    _scores,
    least_regret,
    pick,
)
from ansor.schedule.sketch import Rows, Sketch
from ansor.schedule.steps import Step, Vectorize
from ansor.search.sampling import SampledSpace
from ansor.targets.base import parse_target
from ansor.tasks.recording import RecordedSketch, _SketchRecorder
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor
from tests.vta_declarations import conv2d

pytestmark = pytest.mark.compiler
TARGET = "cpu -mcpu=znver3 -threads=1"


class Opposed(NetworkModel):
    """Two scorers of which each finds worthless what the other likes."""

    def opinions(self, features: FeatureRows) -> NDArray[np.float64]:
        order = np.random.default_rng(0).permutation(features.count)
        return np.exp(np.stack([order - features.count, -order]).astype(np.float64))


def matmul() -> list[Tensor]:
    return workloads.matmul(64, 64, 64)


def has_program(space: SketchSpace) -> bool:
    return len(SampledSpace(space).sample(8, np.random.default_rng(0))) > 0


def test_where_memory_is_small_families_are_scored_by_a_sketch_that_fits() -> None:
    """None of the first sketches fits, and the algorithm with the fewest multiplications comes last."""
    task = SearchTask(int8_conv2d, (32, 32, 16, 16, 3, 3, 1, 0), "micro -board=qemu-riscv32 -workspace=1K")
    firsts = list({_family(space): space for space in reversed(task.spaces)}.values())
    assert len(firsts) > 10 and not any(map(has_program, firsts)) and task.spaces[-1].algorithm == "winograd_tiles_f2"
    chosen = _promising(task.spaces, estimated_scores, np.random.default_rng(0))
    assert has_program(chosen[0]) and chosen[0].algorithm.startswith("winograd_tiles")


@pytest.mark.parametrize(("board", "how"), [
    ("mps2-an386", "chosen by the package's model"), ("nrf52840dk", "chosen by the estimate, because there is no cost model for micro in cycles"),
])  # fmt: skip
def test_the_model_for_boards_picks_where_instructions_are_counted(board: str, how: str) -> None:
    choice = pick(SearchTask(int8_dense, (32, 16, 0), f"micro -board={board}"))
    assert choice.how == how and (choice.confidence is not None) == how.endswith("model")


def test_families_of_each_algorithm_come_in_turn() -> None:
    families: list[tuple[str, tuple[tuple[str, tuple[Step, ...]], ...]]] = [(algorithm, ((name, ()),)) for algorithm in "ab" for name in "xyz"]
    assert [algorithm + stages[0][0] for algorithm, stages in _in_turn(families)] == ["ax", "bx", "ay", "by", "az", "bz"]


def test_a_pick_records_few_sketches_in_few_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    class Counted(Recorder):
        def forget(self) -> None:
            lengths.append(len(self.nodes))
            super().forget()

    monkeypatch.setattr("ansor.tasks.recording.Recorder", Counted)
    recorded: list[Sketch] = []
    own = _SketchRecorder.of

    def counted(recording: _SketchRecorder, sketch: Sketch) -> RecordedSketch:
        recorded.append(sketch)
        return own(recording, sketch)

    monkeypatch.setattr(_SketchRecorder, "of", counted)
    data, weight = te.placeholder((1, 64, 56, 56), name="data"), te.placeholder((64, 64, 3, 3), name="weight")
    task = SearchTask(tensors=[data, weight, nn.conv2d(data, weight, padding=1)], target=TARGET)
    pick(task)
    assert len(task.spaces) >= 80 and 0 < len(recorded) <= 22, "describing a sketch takes most of the time of a first call"
    assert len(lengths) == len(task.alternatives) + 1, "sketches of a declaration share their notes"
    assert 0 < sum(lengths) / len(recorded) < 5_000


def test_the_choice_is_legal_and_the_same_in_any_process() -> None:
    task = SearchTask(matmul, target=TARGET)
    choice = pick(task)
    (space,) = (space for space in task.spaces if space.sketch is choice.program.sketch)
    assert space.legal(np.array([choice.program.row]))[0] and math.isinf(choice.program.cost)
    assert choice.confidence is not None and 0 <= choice.confidence <= 1
    program = (
        "from ansor.tasks.task import SearchTask; from ansor.te import workloads; from ansor.run.zero_tuning import pick; "
        f"print(pick(SearchTask(workloads.matmul, (64, 64, 64), {TARGET!r})).program.row)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(choice.program.row)


def test_a_pick_does_without_masked_arrays() -> None:
    """numpy.ma takes time to import, and some functions of NumPy import it when they are first called."""
    code = (
        "import sys\nfrom ansor.run import kept_picks\nkept_picks.ENABLED = False\nfrom ansor.run.zero_tuning import pick\n"
        "from ansor.tasks.task import SearchTask\nfrom ansor.te import workloads\n"
        f"pick(SearchTask(tensors=workloads.matmul(64, 64, 64), target={TARGET!r}))\nprint('numpy.ma' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


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


def test_of_a_target_with_an_estimate_of_its_own_all_programs_are_looked_at() -> None:
    task = SearchTask(tensors=conv2d((1, 32, 6, 6), 48, 1), target="vta")
    least = math.inf
    for space in task.spaces:
        rows = np.array(list(np.ndindex(*space.sizes)), np.int64)
        costs = np.broadcast_to(np.asarray(task.target.cost(space.sketch.lower_rows(rows))), len(rows))
        least = min(least, float(costs[space.legal(rows)].min()))
    choice = pick(task)
    assert choice.how == "chosen by the estimate, because there is no cost model for vta" and choice.confidence is None
    assert float(np.asarray(task.target.cost(choice.program.sketch.lower_row(choice.program.row)))) == least


def test_the_estimate_has_a_part_in_what_networks_say_and_in_nothing_else() -> None:
    features = FeatureRows(np.zeros((2, WIDTH), np.float32), np.arange(2), 2, np.array([0.0, 1.0]))

    class Flat(NetworkModel):
        def predict(self, features: FeatureRows) -> NDArray[np.float64]:
            return np.ones(features.count)

        def opinions(self, features: FeatureRows) -> NDArray[np.float64]:
            return np.ones((2, features.count))

    flat = Flat(pretrained()._networks)
    np.testing.assert_allclose(_scores(flat, features), [1, np.exp(-ESTIMATED)])
    np.testing.assert_allclose(_opinions(flat, features), [[0, -ESTIMATED]] * 2, atol=1e-12)
    chance = RandomModel().predict(features)
    np.testing.assert_array_equal(_scores(RandomModel(), features), chance)
    np.testing.assert_allclose(_opinions(RandomModel(), features), np.log(chance)[None, :])


def test_where_nothing_is_known_the_estimate_chooses() -> None:
    task = SearchTask(matmul, target=TARGET)
    choice = pick(task, Opposed(pretrained()._networks))
    assert choice.confidence is None and choice.how == "chosen by the estimate, because the model is not sure"
    by_chance = pick(task, RandomModel())
    assert by_chance.confidence is None and by_chance.how == "chosen by the given model", "one scorer tells nothing"


def test_where_no_program_is_legal_the_declaration_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(space: SketchSpace, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.zeros(len(rows), np.bool_)

    monkeypatch.setattr(SketchSpace, "legal", none)
    task = SearchTask(matmul, target=TARGET)
    choice = pick(task)
    assert choice.program.sketch.steps == () and choice.program.row == () and choice.confidence is None
    assert choice.how == "the declaration as it is, because no program of its sketches is legal" and choice.refused


def test_many_sketches_are_looked_at_by_family() -> None:
    task = SearchTask(workloads.conv2d_nchw_bn_relu, (1, 14, 14, 16, 16, 3, 1, 1), TARGET)
    choice = pick(task)
    described = [space for space in task.spaces if "_recorded" in vars(space)]
    assert choice.program.sketch in [space.sketch for space in described] and len(described) < len(task.spaces)


def attention_scores() -> list[Tensor]:
    query, key = (te.placeholder((4, 64, 64), name=name) for name in ("query", "key"))
    return [query, key, nn.softmax(nn.multiply(nn.batch_matmul(query, key), 0.25))]


def test_of_many_combinations_of_rules_few_are_looked_at() -> None:
    task = SearchTask(attention_scores, target=TARGET)
    choice = pick(task)
    families = {_family(space) for space in task.spaces}
    described = [space for space in task.spaces if "_recorded" in vars(space)]
    assert choice.program.sketch in [space.sketch for space in described]
    assert len(families) == 72 and len({_family(space) for space in described}) < len(families) / 3 and len(described) < 40


def test_the_longer_a_chain_the_fewer_of_its_sketches_are_looked_at() -> None:
    value = te.placeholder((8, 64), name="x")
    tensors = [value]
    for k in range(8):
        tensors.append(te.placeholder((64, 64), name=f"w{k}", constant=True))
        value = nn.relu(nn.dense(value, tensors[-1]))
    task = SearchTask(tensors=[*tensors, value], target=TARGET)
    choice = pick(task)
    stages = [_kept_stages(space) for space in task.spaces if "_recorded" in vars(space)]
    assert len(stages) < len(task.spaces) / 2 and max(stages) * len(stages) <= 3 * DESCRIBED  # a search of families, of combinations and of the best
    assert choice.program.sketch.steps


def test_families_differ_by_what_rules_did_to_stages() -> None:
    spaces = SearchTask(attention_scores, target=TARGET).spaces
    first = _family(spaces[0])
    near = [family for family in dict.fromkeys(map(_family, spaces)) if _differences(first, family) == 1]
    assert _differences(first, first) == 0 and _combines(first, [first]) and not _combines(first, near[:1]) and not _combines(first, [])
    one, other = near[0], next(family for family in near if _differences(near[0], family) == 2)
    both = [family for family in map(_family, spaces) if _combines(family, [one, other]) and family not in (one, other)]
    assert first in both and any(_differences(first, family) == 2 for family in both), "what was done to one stage goes with what was done to the other"


def test_combinations_come_in_the_order_of_what_they_combine() -> None:
    """Of the best family, what was done to two of three stages comes before what was done to one."""

    def family(*done: int) -> tuple[str, tuple[tuple[str, tuple[Step, ...]], ...]]:
        return "", tuple((name, (Vectorize(name, str(k)),)) for name, k in zip("abc", done, strict=True))

    best = [family(1, 1, 1), family(2, 2, 2)]
    others = [family(2, 2, 1), family(1, 2, 1), family(3, 1, 1), family(2, 1, 2)]
    assert _combinations(others, best) == [others[1], others[0], others[3]]


def test_the_least_regret() -> None:
    place, regret = least_regret(np.log([[1.0, 0.5, 0.2], [0.9, 0.8, 0.1]]))
    assert (place, regret) == (0, 0.0), "both have the same favourite"
    place, regret = least_regret(np.log([[1.0, 0.7, 0.2], [0.1, 0.8, 0.9]]))  # neither favourite: the other scorer finds it bad
    assert place == 1 and regret == pytest.approx(math.log(1 / 0.7))
    assert least_regret(np.log([[0.2, 0.4]])) == (1, math.inf)


def test_where_no_model_knows_the_target_the_estimate_chooses_and_nothing_is_promised() -> None:
    """The same machine, of which nothing was learned."""
    known = parse_target(TARGET)
    task = SearchTask(matmul, target=replace(known, prior=replace(known.prior, family="")))
    choice = pick(task)
    assert (choice.how, choice.confidence) == ("chosen by the estimate, because there is no cost model for cpu", None)
    assert pick(task, pretrained()).how == "chosen by the given model"  # one that is given is asked
