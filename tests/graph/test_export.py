"""Arguments that happen to be one object in the example are still arguments of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ansor import api

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
X, Y = torch.randn(2, 8), torch.randn(2, 8)
CASES: dict[str, tuple[Callable[..., torch.Tensor], object, tuple[tuple[object, ...], dict[str, object]]]] = {
    "positions": (lambda a, b: a - 2 * b, (X, X), ((X, Y), {})),
    "names": (lambda a, b: a - 2 * b, {"a": X, "b": X}, ((), {"a": X, "b": Y})),
    "nested": (lambda pair: pair[0] - 2 * pair[1]["k"], ([X, {"k": X}],), (([X, {"k": Y}],), {})),
    "three": (lambda q, k, v: torch.softmax(q @ k.T, 1) @ v, (X, X, X), ((X, Y, X + Y), {})),
}


@pytest.mark.parametrize("case", CASES)
def test_one_tensor_given_twice(case: str) -> None:
    model, examples, (args, kwargs) = CASES[case]
    net = api.compile(model, examples, "cpu -threads=1")  # type: ignore[arg-type]  # a list of what examples may be
    torch.testing.assert_close(net(*args, **kwargs), model(*args, **kwargs), rtol=1e-5, atol=1e-5)


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 8))

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return a + 2 * self.weight


def test_a_weight_as_the_example() -> None:
    model = Weighted()
    net = api.compile(model, (model.weight,), "cpu -threads=1")
    with torch.no_grad():
        torch.testing.assert_close(net(Y), model(Y))
