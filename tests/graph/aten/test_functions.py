"""Scalar functions against PyTorch, with nothing left to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch
NAMES = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "digamma", "erfc", "erfinv", "exp2", "expm1", "frac", "isfinite", "isinf", "isnan",
         "isneginf", "isposinf", "lgamma", "log10", "log1p", "logical_not", "sgn", "sign", "signbit", "sinc", "sinh", "tan")
PAIRS = ("atan2", "copysign", "eq", "floor_divide", "fmax", "fmin", "fmod", "hypot", "logical_xor", "nextafter", "pow", "remainder", "true_divide", "xlogy")


def test_functions_of_one(agrees: Callable[..., ExtractedGraph]) -> None:
    x = torch.tensor([[-2.5, -1.0, -0.3, 0.5], [0.2, 1.0, 1.5, 7.0]])
    assert not agrees(lambda x: {name: getattr(torch, name)(x) for name in NAMES}, x).torch_calls


def test_the_signs_of_zeros(agrees: Callable[..., ExtractedGraph]) -> None:
    """Which quotients show."""
    assert not agrees(lambda x: 1 / -x, torch.tensor([0.0, -0.0, 2.0])).torch_calls


def test_numbers_out_of_range_stay_with_pytorch(agrees: Callable[..., ExtractedGraph]) -> None:
    assert "which is outside 0..255" in str(agrees(lambda x: -3 - x, torch.tensor([0, 5, 250], dtype=torch.uint8)).torch_calls)


def test_functions_of_two(agrees: Callable[..., ExtractedGraph]) -> None:
    x, y = torch.tensor([-7.5, -1.0, 0.0, 2.5, 1.0, 6.0]), torch.tensor([2.0, -3.0, 1.0, -2.0, 0.1, 3.0])
    assert not agrees(lambda x, y: {name: getattr(torch, name)(x, y) for name in PAIRS}, x, y).torch_calls


def test_numbers_beside_tensors(agrees: Callable[..., ExtractedGraph]) -> None:
    def model(x: torch.Tensor) -> object:
        return (2**x, x % 2, torch.fmod(x, 2), x // 2, torch.div(x, 3, rounding_mode="trunc"), torch.copysign(x, -1), torch.addcmul(x, x, x, value=0.5),
                torch.addcdiv(x, x, x + 9), x.masked_fill(x > 0, torch.tensor(3.0)), x.clamp(torch.tensor(-1.0), torch.tensor(1.0)), torch.full_like(x, 3) + x)

    assert not agrees(model, torch.tensor([-2.5, 0.0, 1.5, 4.0])).torch_calls


def test_what_conditions_are_added_to(agrees: Callable[..., ExtractedGraph]) -> None:
    assert not agrees(lambda x: ((x > 0) * (x < 2), (x > 0) + (x < -1), (x > 0) ^ (x > 1), x.bool()), torch.tensor([-2.5, 0.0, 1.5, 4.0])).torch_calls


def test_integers_are_not_divided_by_what_may_be_zero(agrees: Callable[..., ExtractedGraph]) -> None:
    """The processor would end the program; PyTorch raises an error."""
    extracted = agrees(lambda x, y: x % y, torch.tensor([7, -7]), torch.tensor([2, 3]))
    assert list(extracted.torch_calls) == ["aten.remainder.Tensor"]
    extracted = agrees(lambda x: torch.div(x, -1, rounding_mode="trunc"), torch.tensor([7, -7]))
    assert list(extracted.torch_calls) == ["aten.div.Tensor_mode"]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.int8, torch.uint8])
def test_integers_are_divided_by_numbers(agrees: Callable[..., ExtractedGraph], dtype: torch.dtype) -> None:
    def model(x: torch.Tensor) -> object:
        return x // 3, x % 3, torch.fmod(x, 3), torch.div(x, 3, rounding_mode="trunc"), torch.div(x, 1, rounding_mode="floor")

    info = torch.iinfo(dtype)
    given = torch.tensor([info.min, 1, info.max], dtype=dtype)
    assert agrees(lambda x: x // 300, given).torch_calls.keys() == (set() if info.max >= 300 else {"aten.floor_divide.default"})
    assert not agrees(model, torch.tensor([info.min, info.min + 1, *range(max(-7, info.min), 8), info.max], dtype=dtype)).torch_calls
