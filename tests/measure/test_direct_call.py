"""Calls with torch tensors that need nothing: straight in; everything else takes the other way, with the same result or the same sentence."""

import numpy as np
import pytest

from ansor.codegen.source import Argument
from ansor.measure.direct_call import DirectCall

pytestmark = pytest.mark.torch
ARGUMENTS = (Argument("x", (4, 6), "float32", "input"), Argument("w", (6,), "float32", "constant"), Argument("y", (4, 6), "float32", "output"))


def test_addresses_stand_in_the_order_of_the_arguments() -> None:
    import torch

    call = DirectCall(ARGUMENTS, {"w": 4096})
    x = torch.zeros(4, 6)
    results = call.fill([x])
    assert results is not None and results[0].shape == (4, 6) and results[0].dtype is torch.float32
    assert list(call.pointers) == [x.data_ptr(), 4096, results[0].data_ptr()]


def test_what_has_to_be_converted_copied_or_refused_goes_another_way() -> None:
    import torch

    call = DirectCall(ARGUMENTS, {"w": 4096})
    wrong = [
        torch.zeros(4, 6, dtype=torch.float64), torch.zeros(6, 4), torch.zeros(6, 4).t(), torch.zeros(25)[1:].reshape(4, 6), np.zeros((4, 6), np.float32),
        torch.zeros(4, 6).to_sparse(), torch.zeros(4, 6, device="meta"),
    ]  # fmt: skip
    assert [call.fill([value]) for value in wrong] == [None] * len(wrong)  # type: ignore[list-item]  # arrays are refused
    assert call.fill([]) is None and call.fill([torch.zeros(4, 6)] * 2) is None
    unbound = DirectCall(ARGUMENTS, {})
    assert unbound.fill([torch.zeros(4, 6)]) is None and unbound.fill([torch.zeros(4, 6), torch.zeros(6)]) is not None
