"""Traced graphs as text: equal for equal graphs, different for others, and none for what text cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from ansor.graph.traced import argument_text, state_text, traced_text, weight_text

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")]


def text_of(function: Callable[..., Any], *given: object) -> str | None:
    found: list[str | None] = []

    def backend(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        found.append(traced_text(graph))
        return graph

    torch.compiler.reset()
    with torch.no_grad():
        torch.compile(function, backend=backend)(*given)
    (text,) = found
    return text


def in_autocast(values: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return values @ values


FUNCTIONS: list[Callable[[torch.Tensor], Any]] = [
    lambda values: values.relu(), lambda values: torch.relu(values), lambda values: values + 1, lambda values: values + 1.0, lambda values: values + 2,
    lambda values: values.sum(0), lambda values: values.sum(1), lambda values: values.to(torch.float64), lambda values: values[1:], lambda values: values[:1],
    lambda values: torch.nn.functional.gelu(values), lambda values: torch.nn.functional.gelu(values, approximate="tanh"), in_autocast,
    lambda values: torch.ops.aten.sin(values), lambda values: (values.sin(), values.cos()), lambda values: (values.cos(), values.sin()),
    lambda values: torch.nn.functional.scaled_dot_product_attention(values[None], values[None], values[None]),
    lambda values: torch.vmap(torch.sin)(values),
]  # fmt: skip


def test_graphs_that_differ_have_different_texts_and_equal_ones_the_same() -> None:
    values = torch.ones(3, 3)
    texts = [text_of(function, values) for function in FUNCTIONS]
    assert None not in texts and len(set(texts)) == len(FUNCTIONS)
    assert [text_of(function, values) for function in FUNCTIONS] == texts


def test_functions_of_others_are_not_told_by_their_names() -> None:
    def own(values: torch.Tensor) -> torch.Tensor:
        return values * 2

    torch.compiler.allow_in_graph(own)  # type: ignore[no-untyped-call]  # PyTorch says no types
    assert text_of(lambda values: own(values) + 1, torch.ones(3)) is None


def test_what_changes_a_weight_changes_its_text() -> None:
    plain = torch.arange(6.0).reshape(2, 3)
    texts = {weight_text(one) for one in (plain, plain + 0.5, plain.t(), plain.double(), plain.reshape(3, 2), plain.bfloat16())}
    assert len(texts) == 6 and None not in texts
    assert weight_text(plain.clone()) == weight_text(torch.nn.Parameter(plain))
    assert weight_text(plain.to_sparse()) is None and weight_text(torch.ones(2, dtype=torch.complex64).conj()) is None


def test_arguments_are_told_by_shape_and_kind_and_numbers_by_value() -> None:
    given: list[object] = [torch.ones(2, 3), torch.ones(3, 2).t(), torch.ones(2, 3).int(), 3, 3.0, True, None, "3"]
    texts = [argument_text(one) for one in given]
    assert len(set(texts)) == len(given) and None not in texts
    assert argument_text(torch.zeros(2, 3)) == texts[0]
    assert argument_text(object()) is None and argument_text(torch.eye(2).to_sparse()) is None


def test_the_state_of_pytorch() -> None:
    plain = state_text()
    assert plain is not None and plain == state_text()
    with torch.autocast("cpu", torch.bfloat16):
        assert state_text() not in (plain, None)
    with torch.device("cpu"):
        assert state_text() is None  # a mode that sees all calls
