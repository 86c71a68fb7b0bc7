import pytest

from ansor.dataset.layers import COUNT, DENSE, FEWEST_DENSE, LAYERS, MOST_PRODUCTS, SHARES, drawn_layers
from ansor.dataset.operators import dataset_tasks, tasks_for
from ansor.integer.widths import multiplies_pairs
from ansor.ir.dag import Dag
from ansor.targets.base import parse_target

BOARDS = ("mps2-an386", "mps3-an547", "qemu-riscv32")


@pytest.mark.parametrize("board", BOARDS)
def test_layers_of_a_board_are_different_and_small(board: str) -> None:
    target = parse_target(f"micro -board={board}")
    tasks = tasks_for(target)
    assert len({task.name for task in tasks}) == len(tasks) == COUNT + DENSE and tasks == tasks_for(target)
    assert {task.kind for task in tasks} == set(LAYERS) == {kind for kind, _ in SHARES}
    for task in tasks:
        flop = Dag(task.declare()).flop
        assert FEWEST_DENSE <= flop <= 8 * MOST_PRODUCTS and not target.refusal(Dag(task.declare())), task.name


@pytest.mark.parametrize(("board", "wide"), [*zip(BOARDS, (True, False, False), strict=True)])
def test_weights_have_16_bits_where_pairs_of_them_are_multiplied(board: str, wide: bool) -> None:
    target = parse_target(f"micro -board={board}")
    assert multiplies_pairs(target) == wide
    dtypes = {tensor.dtype for task in tasks_for(target) if task.kind != "int8_depthwise" for tensor in task.declare() if tensor.name == "weights"}
    assert dtypes == ({"int8", "int16"} if wide else {"int8"})


def test_processors_learn_from_operators() -> None:
    assert tasks_for(parse_target("cpu")) == dataset_tasks()
    assert not {kind for kind, _ in drawn_layers(parse_target("micro"))} & {task.kind for task in dataset_tasks()}
