"""In-place calls: those that are read as new values, those that PyTorch rewrites, and the same results from all of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ansor.errors import ModelError
from ansor.graph.from_torch import from_torch
from ansor.graph.in_place import new_value, unseen_write, without_writes
from ansor.graph.tasks import ExtractedGraph, extract

Function = Callable[[Tensor], Tensor]
aten = torch.ops.aten


def exported(model: Callable[..., object], *args: object) -> torch.export.ExportedProgram:
    """As torch.export writes it, in-place calls included."""

    class Module(nn.Module):
        def forward(self, *inputs: Tensor) -> object:
            return model(*inputs)

    with torch.no_grad():
        return torch.export.export(Module(), args, strict=False)


def writes_left(function: Callable[..., object], *args: object) -> list[str]:
    program = exported(function, *args)
    graph = program.graph
    assert any(isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable for node in graph.nodes), "nothing is written to at all"
    without_writes(program)
    return [str(node.target) for node in graph.nodes if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable]


def residual(x: Tensor) -> Tensor:
    y = x * 2
    y += x
    return y.relu_() + 1


def of_itself(x: Tensor) -> Tensor:
    y = x * 2
    return y.mul_(y)


def of_a_view_that_ends(x: Tensor) -> Tensor:
    return (x * 2).reshape(-1)[:3].add_(1)


def of_a_whole_view(x: Tensor) -> Tensor:
    return (x * 2).view(-1).relu_().neg_().sqrt().abs()


def scaled(x: Tensor) -> Tensor:
    return (x + 1).add_(x, alpha=3).clamp_(min=0.5)


NEW_VALUES: list[Function] = [residual, of_itself, of_a_view_that_ends, of_a_whole_view, scaled]


@pytest.mark.parametrize("function", NEW_VALUES, ids=lambda one: one.__name__)
def test_writes_that_nobody_else_sees_are_new_values(function: Function, agrees: Callable[..., ExtractedGraph], monkeypatch: pytest.MonkeyPatch) -> None:
    assert writes_left(function, torch.randn(3, 4)) == []
    monkeypatch.setattr("ansor.graph.from_torch._as_aten", None)
    agrees(function, torch.randn(3, 4))


def base_read(x: Tensor) -> Tensor:
    y = x * 2
    y[0].add_(1)
    return y * 3


def view_read(x: Tensor) -> Tensor:
    y = x * 2
    row = y[1]
    y.relu_()
    return row + 1


def two_views(x: Tensor) -> Tensor:
    y = x * 2
    one, other = y.view(-1), y.t()
    one.add_(1)
    return other.contiguous() * one.sum()


def base_returned(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    return y.view(-1).add_(1), y


def one_of_several(x: Tensor) -> Tensor:
    y = x * 2
    first, second = torch.split(y, 2, 1)
    first.add_(second)
    return y + 1


def behind_a_call_that_does_nothing(x: Tensor) -> Tensor:
    y = x * 2
    torch.nn.functional.dropout(y, 0.5, training=False).add_(1)
    return y * 3


def other_dtype(x: Tensor) -> Tensor:
    return (x * 2).gt_(0.5) + 1


SEEN: list[Callable[[Tensor], object]] = [behind_a_call_that_does_nothing, base_read, view_read, two_views, base_returned, one_of_several, other_dtype]


@pytest.mark.parametrize("function", SEEN, ids=lambda one: one.__name__)
def test_writes_that_others_see_are_rewritten_by_pytorch(function: Callable[[Tensor], object], agrees: Callable[..., ExtractedGraph]) -> None:
    assert len(writes_left(function, torch.randn(3, 4))) == 1
    agrees(function, torch.randn(3, 4))


def ending_in_dropout(x: Tensor) -> Tensor:
    return torch.nn.functional.dropout((x * 2).relu_(), 0.5, training=False)


def dropout_and_its_operand(x: Tensor) -> tuple[Tensor, Tensor]:
    y = (x * 2).relu_()
    return torch.nn.functional.dropout(y, 0.0), y


@pytest.mark.parametrize("function", [ending_in_dropout, dropout_and_its_operand], ids=lambda one: one.__name__)
def test_results_may_be_those_of_dropout(function: Callable[[Tensor], object], agrees: Callable[..., ExtractedGraph]) -> None:
    assert writes_left(function, torch.randn(3, 4)) == []
    agrees(function, torch.randn(3, 4))


def test_writes_stay_where_a_call_depends_on_the_layout_of_memory() -> None:
    def function(x: Tensor) -> Tensor:
        return (x * 1)[:, ::2].add_(1).as_strided((2,), (1,))

    assert len(writes_left(function, torch.randn(2, 4))) == 1


def test_statistics_of_a_norm_over_weights_are_not_changed_by_reading() -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.values = nn.Parameter(torch.randn(4, 3))
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("variance", torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return x + torch.nn.functional.batch_norm(self.values, self.mean, self.variance, training=True)  # type: ignore[arg-type]

    model = Normed()
    with suppress(ModelError):
        extract(model, torch.randn(4, 3), borrowed=True)
    assert torch.equal(model.mean, torch.zeros(3)) and torch.equal(model.variance, torch.ones(3))  # type: ignore[arg-type]


def to_the_input(x: Tensor) -> Tensor:
    return x.add_(1) * 2


def to_a_view_of_the_input(x: Tensor) -> Tensor:
    return x.view(-1).add_(1) * 2


def to_the_input_behind_dropout(x: Tensor) -> Tensor:
    x = torch.nn.functional.dropout(x, training=False)
    return x.add_(1)


def to_a_view_behind_dropout(x: Tensor) -> Tensor:
    return torch.nn.functional.dropout(x.view(-1), training=False)[:3].relu_() + 1


WRITING = [to_the_input, to_a_view_of_the_input, to_the_input_behind_dropout, to_a_view_behind_dropout]


@pytest.mark.parametrize("function", WRITING, ids=lambda one: one.__name__)
def test_writes_to_inputs_are_refused(function: Function) -> None:
    assert len(writes_left(function, torch.randn(3, 4))) == 1
    with pytest.raises(ModelError, match="changes its own state or its inputs"):
        from_torch(function, torch.randn(3, 4))


def beside_dropout_of_the_input(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    y[0].add_(1)
    return torch.nn.functional.dropout(x, training=False), y


def test_dropout_of_an_input_may_be_returned(agrees: Callable[..., ExtractedGraph]) -> None:
    agrees(beside_dropout_of_the_input, torch.randn(3, 4))


def transposed(x: Tensor) -> Tensor:
    return torch.einsum("ij->ji", x)


def expanded(x: Tensor) -> Tensor:
    first: Tensor = torch.broadcast_tensors(x, x[:1])[0]  # type: ignore[no-untyped-call]
    return first


def grid(x: Tensor) -> Tensor:
    return torch.meshgrid(x[0], indexing="ij")[0]


def of_its_type(x: Tensor) -> Tensor:
    return x.type_as(x)


def of_its_size(x: Tensor) -> Tensor:
    return x.sum_to_size(3, 4)


OTHER_VIEWS: list[Function] = [transposed, grid]
ITSELF: list[Function] = [expanded, of_its_type, of_its_size]
VIEWS = [*OTHER_VIEWS, *ITSELF]
"""Nothing in PyTorch's schemas says that these are views, and its rewriting takes them for copies."""


@pytest.mark.parametrize("view", VIEWS, ids=lambda one: one.__name__)
def test_writes_that_pytorch_would_lose_are_refused(view: Function, agrees: Callable[..., ExtractedGraph]) -> None:
    def to_a_result(x: Tensor) -> Tensor:
        y = x * 2
        view(y).add_(1)
        return y * 3

    def to_the_operand(x: Tensor) -> Tensor:
        y = x * 2
        z = view(y)
        y[:1].add_(1)
        return z * 3

    def to_an_input(x: Tensor) -> Tensor:
        return view(x).add_(1)

    for function in (to_a_result, to_the_operand) if view in ITSELF else ():
        agrees(function, torch.randn(3, 4))
    for function in (to_an_input,) if view in ITSELF else (to_a_result, to_the_operand, to_an_input):
        with pytest.raises(ModelError, match=r"both share memory.*call \.clone\(\)"):
            from_torch(function, torch.randn(3, 4))


@pytest.mark.parametrize("view", VIEWS, ids=lambda one: one.__name__)
def test_writes_that_are_not_lost_are_read(view: Function, agrees: Callable[..., ExtractedGraph]) -> None:
    def alone(x: Tensor) -> Tensor:
        return view(x * 2).add_(1) * 3

    def beside(x: Tensor) -> Tensor:
        y = x * 2
        y[0].add_(1)
        return y.sum() + view(x)

    for function in (alone, beside):
        agrees(function, torch.randn(3, 4))


def of_its_type_afterwards(x: Tensor) -> Tensor:
    h = x * 2
    h[:, 0] = 0
    return h.type_as(x)


def transposed_afterwards(x: Tensor) -> Tensor:
    h = x * 2
    h[:, 0] = 0
    return torch.einsum("ij->ji", h)


@pytest.mark.parametrize("function", [of_its_type_afterwards, transposed_afterwards], ids=lambda one: one.__name__)
def test_views_made_after_a_write_are_read(function: Function, agrees: Callable[..., ExtractedGraph]) -> None:
    agrees(function, torch.randn(3, 4))


def test_results_of_one_call_share_memory_with_their_own_operand_alone(agrees: Callable[..., ExtractedGraph]) -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        a, b = torch.broadcast_tensors(x * 2, y)  # type: ignore[no-untyped-call]
        a += b
        result: Tensor = a
        return result

    agrees(function, torch.randn(3, 4), torch.randn(4))


def test_parts_of_a_loaded_program_share_memory_with_what_they_are_parts_of(tmp_path: Path) -> None:
    torch.export.save(exported(one_of_several, torch.randn(3, 4)), tmp_path / "program.pt2")
    program = torch.export.load(tmp_path / "program.pt2")
    without_writes(program)
    assert "add_" in str(program.graph)


def test_a_write_to_one_tensor_given_twice_is_refused() -> None:
    def function(a: Tensor, b: Tensor) -> Tensor:
        a[0].add_(1)
        return torch.einsum("ij,jk->ik", b, b)

    given = torch.randn(3, 3)
    assert unseen_write(exported(function, given, given)) == ""
    with pytest.raises(ModelError):
        from_torch(function, (given, given))


def test_a_write_to_one_of_two_results_that_share_memory_is_refused() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        first, second = torch.broadcast_tensors(y, y.view(3, 4))  # type: ignore[no-untyped-call]
        first += 1
        result: Tensor = second
        return result

    with pytest.raises(ModelError, match=r"a result of aten\.broadcast_tensors\.default"):
        from_torch(function, torch.randn(3, 4))


def test_a_given_program_that_writes_behind_dropout_is_refused() -> None:
    with pytest.raises(ModelError, match=r"a result of aten\.dropout\.default"):
        from_torch(exported(to_the_input_behind_dropout, torch.randn(3, 4)))
    from_torch(exported(lambda x: torch.nn.functional.dropout(x * 2, training=False).relu_(), torch.randn(3, 4)))


def test_programs_that_are_given_stay_as_they_are() -> None:
    class Residual(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return residual(x)

    program = torch.export.export(Residual(), (torch.randn(3, 4),), strict=False)
    before = str(program.graph)
    from_torch(program)
    assert str(program.graph) == before


def test_which_operators_have_a_twin() -> None:
    assert new_value(aten.add_.Tensor) is aten.add.Tensor
    assert new_value(aten.relu_.default) is aten.relu.default
    assert new_value(aten.masked_fill_.Scalar) is aten.masked_fill.Scalar
    for target in (aten.add.Tensor, aten.add.out, aten.t_.default, aten.bernoulli_.float, aten.resize_.default, aten._foreach_add_.Scalar, getattr):
        assert new_value(target) is None, target
