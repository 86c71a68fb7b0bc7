"""The oracle of the front end: a network whose kernels are declarations evaluated by NumPy equals the PyTorch module.

So does a network whose groups all run in PyTorch's own kernels, wherever they have such a form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.utils import _pytree as pytree

from ansor.graph import row_parts
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.library import library_kernels
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract

Agrees = Callable[..., ExtractedGraph]


def assembled(extracted: ExtractedGraph) -> CompiledNetwork:
    return CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])


def assembled_of_library(extracted: ExtractedGraph) -> CompiledNetwork:
    """Check that every kind of node has a form in PyTorch, where it came from."""
    kernels = library_kernels(extracted)
    missing = [task.name for task, kernel in zip(extracted.tasks, kernels, strict=True) if kernel is None]
    assert not missing, f"no library form: {missing}"
    return CompiledNetwork(extracted, [kernel for kernel in kernels if kernel is not None])


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """These arrays are small, and the machine may be shared."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random weights and inputs in each run."""
    torch.manual_seed(0)


@pytest.fixture
def reference() -> Callable[[ExtractedGraph], CompiledNetwork]:
    """Assembles a network that NumPy runs."""
    return assembled


@pytest.fixture
def agrees(monkeypatch: pytest.MonkeyPatch) -> Agrees:
    """Compile the model, call both with the same arguments, compare structure and values; returns the extracted graph.

    If the first input has several rows, stretches of the network that can be computed for fewer rows at a time are compared, too."""

    def check(model: Callable[..., object], *args: object, tolerance: float = 1e-4, report: Callable[[str], None] | None = None,
              **kwargs: object) -> ExtractedGraph:
        model = model.eval() if isinstance(model, torch.nn.Module) else model
        extracted = extract(model, kwargs or args, report or (lambda line: None))  # tests check `torch_calls`
        with torch.no_grad():
            wanted = model(*args, **kwargs)
        _compare(wanted, assembled(extracted)(*args, **kwargs), tolerance)
        _compare_parts(extracted, lambda network: _compare(wanted, network(*args, **kwargs), tolerance), monkeypatch)
        network = assembled_of_library(extracted)
        for _ in range(2):  # the second run starts with what the first left in the arena
            _compare(wanted, network(*args, **kwargs), tolerance)
        return extracted

    return check


def _compare_parts(extracted: ExtractedGraph, compare: Callable[[CompiledNetwork], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest stretch, the shortest ones at both ends, and one in the middle, each in parts. NumPy needs no aligned arrays."""
    with monkeypatch.context() as patch:
        patch.setattr(row_parts, "ALIGNMENT", 1)
        possible = row_parts.stretches(extracted, 4)
        longest = max(possible, key=lambda one: one.end - one.first, default=None)
        for stretch in dict.fromkeys([*possible[:: max(1, len(possible) // 3)], *([longest] if longest else [])]):
            compare(assembled(row_parts.in_parts(extracted, stretch).extracted))


def _compare(wanted: object, found: object, tolerance: float) -> None:
    wanted_leaves, wanted_tree = pytree.tree_flatten_with_path(wanted)
    found_leaves, found_tree = pytree.tree_flatten(found)
    assert found_tree == wanted_tree
    for (path, one), other in zip(wanted_leaves, found_leaves, strict=True):
        if not isinstance(one, torch.Tensor):
            assert one == other
            continue
        assert other.shape == one.shape and other.dtype == one.dtype
        finite = one[one.isfinite()]
        scale = max(finite.abs().max().item(), 1e-6) if one.dtype.is_floating_point and finite.numel() else 1.0
        try:
            torch.testing.assert_close(other, one, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
        except AssertionError as error:
            raise AssertionError(f"result{pytree.keystr(path)}: {error}") from None
