"""How a network for inputs of any length is called."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from torch import nn

from ansor.errors import ModelError
from ansor.graph.any_length import extract_lengths
from ansor.graph.export import CallArguments
from ansor.graph.spans import padding_of
from tests.graph.test_length_rules import LENGTH, SHORTER, extracted

pytestmark = pytest.mark.torch


def test_the_input_for_the_length_has_a_name_of_its_own() -> None:
    class Named(nn.Module):
        def forward(self, length: torch.Tensor) -> torch.Tensor:
            return length.softmax(1)

    made = extracted(Named(), 1, torch.randn(2, LENGTH))
    assert list(made.network.graph.inputs) == ["length", made.padding.keyword] and made.padding.keyword != "length"


def test_positional_and_keyword_arguments_together_are_refused() -> None:
    call: CallArguments = (torch.randn(2, LENGTH),), {"other": torch.randn(2, LENGTH)}
    with pytest.raises(ModelError, match="positional and keyword arguments together"):
        extract_lengths(lambda x, other: x + other, {LENGTH: call, SHORTER: call})


def test_how_it_is_called_can_be_written_as_json() -> None:
    padding = extracted(lambda x: x.softmax(1), 1, torch.randn(2, LENGTH)).padding
    assert padding_of(json.loads(json.dumps(dataclasses.asdict(padding)))) == padding


def test_the_first_error_is_reported_if_no_call_explains_it() -> None:
    class Long(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.softmax(1) if x.shape[1] > SHORTER else x

    calls: dict[int, CallArguments] = {length: ((torch.randn(2, length),), {}) for length in (LENGTH, SHORTER, LENGTH - 1)}
    with pytest.raises(ModelError, match=f"computes differently for {LENGTH} and for {SHORTER}"):
        extract_lengths(Long(), calls)
