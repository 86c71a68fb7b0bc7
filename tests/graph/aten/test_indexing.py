"""What reads where tensors of integers say, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as f

from ansor.errors import OutOfRangeError
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch
Agrees = Callable[..., ExtractedGraph]

KNOWN_ORDERS: dict[str, Callable[[torch.Tensor], object]] = {
    "flip": lambda x: (x.flip(0), x.flip(0, -1)), "roll": lambda x: (x.roll(2), x.roll((1, -2), (0, 2))), "repeat": lambda x: x.repeat_interleave(3, 1),
    "pads": lambda x: (f.pad(x, (1, 2), mode="reflect"), f.pad(x, (2, 1), mode="replicate"), f.pad(x, (1, 3), mode="circular"), f.pad(x, (-1, 2, 0, -2))),
    "diagonal": lambda x: (x.diagonal(), x.diagonal(1, 0, 2), x[0].diag(), torch.diag_embed(x[0, 0])),
    "unfold": lambda x: (x.unfold(1, 2, 3), x.unfold(2, 3, 1)),
    "constants": lambda x: (x[:, [0, -1, 2]], x[[0, 1], :, [3, 4]], x[:, [[0], [1]], [2, 3]], x[[1, 0], [2, 3]]),
    "strided": lambda x: x.as_strided((2, 3), (7, 2), 4),
    "selected": lambda x: x.index_select(2, torch.tensor([4, 0])), "gathered": lambda x: torch.gather(x, 1, torch.tensor([[[0, 3, 1, 1, 2]]])),
    "taken": lambda x: torch.take(x, torch.tensor([[0, -1], [7, 39]])),
}  # fmt: skip


def test_orders_that_are_known(agrees: Agrees) -> None:
    assert not agrees(lambda x: {name: function(x) for name, function in KNOWN_ORDERS.items()}, torch.randn(2, 4, 5)).torch_calls


def test_indices_that_are_given(agrees: Agrees) -> None:
    def model(x: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> object:
        return x[i], x[:, i], x[i, :, i + 1], x[:, i, j], torch.gather(x, 2, j[None].abs().expand(2, 2, 2)), x.index_select(1, j[0].abs())

    assert not agrees(model, torch.randn(2, 4, 5), torch.tensor([1, -2]), torch.tensor([[0, -1], [-3, 2]])).torch_calls


@pytest.mark.parametrize("wrong", [3, -4])
def test_an_index_out_of_range(wrong: int, reference: Callable[[ExtractedGraph], CompiledNetwork]) -> None:
    network = reference(extract(lambda x, i: x[i], (torch.randn(3, 2), torch.tensor([0, 1]))))
    with pytest.raises(OutOfRangeError, match=r"looks up row .* of a table of 3 rows"):
        network(torch.randn(3, 2), torch.tensor([0, wrong]))
