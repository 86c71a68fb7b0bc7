"""Difficult programs for a backend of `torch.compile`: results and written tensors equal PyTorch's, call after call, without new errors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo.testing
from torch.utils import _pytree as pytree

from ansor.torch_backend import backend

pytestmark = [
    pytest.mark.compiler, pytest.mark.usefixtures("fresh_dynamo"), pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]  # fmt: skip

OPTIONS: dict[str, Any] = {"threads": 1, "library": False}
Program = Callable[..., Any]


def with_a_break(x: torch.Tensor) -> torch.Tensor:
    doubled = x * 2
    torch._dynamo.graph_break()
    return doubled + 1


def written_in_place(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


def written_through_a_view(x: torch.Tensor) -> torch.Tensor:
    x[0].zero_()
    return x + 1


def in_autocast(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x


def device_by_text(x: torch.Tensor) -> torch.Tensor:
    return x.to("cpu") + torch.ones(3, device="cpu")


def twice_the_same(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    found = x + 1
    return found, found


def aliases(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    found = x * 2
    return found, found.t()


def sine_of_row(row: torch.Tensor) -> torch.Tensor:
    return row.sin()


def sum_of_squares(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum()


PROGRAMS: dict[str, Program] = {
    "with a break": with_a_break, "written in place": written_in_place, "written through a view": written_through_a_view, "autocast": in_autocast,
    "device": device_by_text, "itself": lambda x: x, "a view": lambda x: x.view(-1), "twice the same": twice_the_same,
    "aliases": aliases, "nothing": lambda x: None, "numbers": lambda x: (x.shape[0], None, 2.5, "word", x + 1),
    "nested": lambda x: {"one": [x + 1, (x * 2, None)], "two": x.sum()}, "item": lambda x: x + float(x.sum() > 0), "no dimensions": lambda x: x.sum() * 2,
    "empty": lambda x: x[:0] * 2, "expanded": lambda x: x.sum(0).expand(4, 3), "transposed": lambda x: x.t() * 1, "constant": lambda x: torch.arange(4),
    "complex": lambda x: torch.view_as_real(torch.fft.fft(x)), "split": lambda x: x.split(1), "where": lambda x: torch.where(x > 0, x, -x),
    "nonzero": lambda x: x.nonzero(), "unique": lambda x: torch.unique(x.round()), "sorted": lambda x: x.sort(1), "vmap": torch.vmap(sine_of_row),
    "gradient": torch.func.grad(sum_of_squares), "detached": lambda x: x.detach() * 2, "cloned": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "indices": lambda x: x[torch.tensor([0, 2, 1])], "put": lambda x: x.clone().index_fill_(0, torch.tensor([1]), 7.0), "bool": lambda x: (x > 0).all(),
    "integers": lambda x: x.long() // 2 + 3, "cumulative": lambda x: x.cumsum(0), "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
}  # fmt: skip


def assert_as_eager(program: Program, compiled: Program, given: tuple[Any, ...]) -> None:
    """Compare results, and the arguments afterwards; or both raise the same kind of error."""
    own, other = copy.deepcopy(given), copy.deepcopy(given)
    try:
        expected = program(*own)
    except Exception as error:
        with pytest.raises(type(error)):
            compiled(*other)
        return
    found = compiled(*other)
    for one, two in ((found, expected), (other, own)):
        left, right = pytree.tree_flatten(one), pytree.tree_flatten(two)
        assert left[1] == right[1]
        for a, b in zip(left[0], right[0], strict=True):
            if isinstance(b, torch.Tensor):
                assert type(a) is type(b) and a.requires_grad == b.requires_grad
                coarse = b.dtype in (torch.float16, torch.bfloat16)
                torch.testing.assert_close(a, b, rtol=2e-2 if coarse else 1e-4, atol=1e-2 if coarse else 1e-5)
            else:
                assert a == b and type(a) is type(b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    program = PROGRAMS[name]
    compiled = torch.compile(program, backend=backend, options=OPTIONS)
    for guard in (torch.no_grad(), torch.inference_mode()):
        with guard:
            for given in (torch.randn(3, 3), torch.randn(3, 3), torch.randn(3, 3).t()):
                assert_as_eager(program, compiled, (given,))


DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + x, x * 2, x == x, x.t(), x.to(torch.float64 if not x.is_complex() else x.dtype)

    compiled = torch.compile(program, backend=backend, options=OPTIONS)
    with torch.no_grad():
        for _ in range(2):
            assert_as_eager(program, compiled, ((torch.randn(2, 3) * 3).to(dtype),))


@pytest.mark.parametrize("size", [(0, 3), (1, 3), (3, 1), (2, 0)])
def test_empty_and_single_elements(size: tuple[int, int]) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 2, x.sum(0), torch.cat([x, x]), torch.softmax(x, 1)

    with torch.no_grad():
        assert_as_eager(program, torch.compile(program, backend=backend, options=OPTIONS), (torch.randn(size),))


def test_changing_sizes_in_both_dimensions() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).eval()
    compiled = torch.compile(module, backend=backend, options=OPTIONS, dynamic=True, fullgraph=True)
    with torch.no_grad():
        for batch in (1, 2, 3, 2, 1):
            for length in (1, 5, 3):
                assert_as_eager(module, compiled, (torch.randn(batch, length, 4),))


def test_a_marked_dimension() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ x.mT, -1) * x.shape[0]

    compiled = torch.compile(program, backend=backend, options=OPTIONS)
    with torch.no_grad():
        for size in (2, 3, 5, 3):
            values = torch.randn(size, 4)
            torch._dynamo.mark_dynamic(values, 0)
            torch.testing.assert_close(compiled(values), program(values), rtol=1e-4, atol=1e-5)


def test_training() -> None:
    """Gradients, and updated buffers, step by step."""
    modules = [torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 1)) for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    calls: list[Any] = [torch.compile(modules[0], backend=backend, options=OPTIONS), modules[1]]
    optimizers = [torch.optim.SGD(module.parameters(), 0.1) for module in modules]
    for _ in range(3):
        values = torch.randn(6, 4)
        for call, optimizer in zip(calls, optimizers, strict=True):
            optimizer.zero_grad()
            call(values).square().mean().backward()
            optimizer.step()
    for one, other in zip(modules[0].state_dict().values(), modules[1].state_dict().values(), strict=True):
        torch.testing.assert_close(one, other)


def test_hooks_and_dropout() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    module[0].register_forward_hook(lambda _, given, found: found * 2)
    compiled = torch.compile(module, backend=backend, options=OPTIONS)
    with torch.no_grad():
        module.train()
        dropped = compiled(torch.ones(64, 4))
        assert 0.2 < float((dropped == 0).float().mean()) < 0.8
        module.eval()
        assert_as_eager(module, compiled, (torch.randn(3, 4),))


def test_pytorchs_counter_counts_the_graphs() -> None:
    counter = torch._dynamo.testing.CompileCounterWithBackend("ansor")
    compiled = torch.compile(with_a_break, backend=counter)
    with torch.no_grad():
        assert_as_eager(with_a_break, compiled, (torch.randn(3),))
    assert counter.frame_count == 2
