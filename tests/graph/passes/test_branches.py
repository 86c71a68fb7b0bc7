"""Sums of convolutions of the same data are one convolution, and other sums stay as they are."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from ansor.graph.from_torch import from_torch
from ansor.graph.ir import Graph, Node, Value
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork
from ansor.graph.passes.batch_norm import fold_batch_norm
from ansor.graph.passes.branches import fold_branches
from ansor.graph.passes.padding import fold_padding
from ansor.graph.tasks import extract

pytestmark = pytest.mark.torch

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Sum(nn.Module):
    """The sum of what modules make of the same data."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = self.branches[0](x)
        for branch in self.branches[1:]:
            total = total + branch(x)
        return total


class Plus(nn.Module):
    """What a module makes plus a number or an array."""

    def __init__(self, shift: float | Tensor, module: nn.Module) -> None:
        super().__init__()
        self.shift, self.module = shift, module

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = self.module(x) + self.shift
        return total


class Times(nn.Module):
    """The data times a number or an array."""

    def __init__(self, factor: float | Tensor) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class Padded(nn.Sequential):
    """A module after padding with zeros."""

    def __init__(self, sizes: tuple[int, int, int, int], module: nn.Module) -> None:
        super().__init__(nn.ZeroPad2d(sizes), module)


def operators(model: nn.Module, *given: Tensor) -> list[str]:
    return [node.op for node in fold_branches(fold_padding(fold_batch_norm(from_torch(model.eval(), given).graph)))]


def agrees(model: nn.Module, *given: Tensor, tolerance: float = 1e-4) -> None:
    """With the model in double precision."""
    extracted = extract(model.eval(), given)
    found = CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])(*given)
    exact = copy.deepcopy(model).double()(*(one.double() for one in given))
    assert isinstance(found, Tensor)
    assert_close(found.double(), exact, atol=tolerance, rtol=tolerance)


def settled(norm: nn.Module) -> nn.Module:
    for name in ("weight", "bias", "running_mean", "running_var"):
        nn.init.uniform_(getattr(norm, name), 0.2, 1.5)
    return norm


@given(st.data())
@settings(max_examples=40)
def test_branches_that_are_drawn(data: st.DataObject) -> None:
    """Odd kernels around the same middle, with any strides and groups; with stride 1 also the data itself, scaled or not; numbers, too."""
    rank, groups, dilation, stride = (data.draw(st.integers(1, most)) for most in (3, 3, 2, 2))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    channels = groups * data.draw(st.integers(1, 3))

    def convolution(size: int) -> nn.Module:
        made: nn.Module = CONVOLUTIONS[rank - 1](channels, channels, size, stride, (size // 2) * dilation, dilation, groups, bias=data.draw(st.booleans()))
        return nn.Sequential(made, settled(NORMS[rank - 1](channels))) if data.draw(st.booleans()) else made

    branches = [convolution(data.draw(st.sampled_from((1, 3)))) for _ in range(data.draw(st.integers(2, 4)))]
    if stride == 1:
        others = (settled(NORMS[rank - 1](channels)), nn.Identity(), Times(-1.5), Plus(2, nn.Identity()))
        branches += data.draw(st.lists(st.sampled_from(others), unique=True, max_size=2))
    model: nn.Module = Sum(*data.draw(st.permutations(branches)))
    if data.draw(st.booleans()):
        model = Plus(data.draw(st.sampled_from((0.5, -3))), model)
    x = torch.randn(2, channels, *(5, 6, 4)[:rank])
    assert operators(model, x) == [f"conv{rank}d"]
    agrees(model, x)


class Twice(nn.Module):
    """A branch that is also a result."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first = self.one(x)
        return first + self.two(x), first


class Other(Twice):
    """Branches of different data."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        total: Tensor = self.one(x) + self.two(x.relu())
        return total


class Given(nn.Module):
    """Weights that are inputs."""

    def forward(self, x: Tensor, one: Tensor, two: Tensor) -> Tensor:
        return nn.functional.conv2d(x, one) + nn.functional.conv2d(x, two)


KEPT: dict[str, tuple[nn.Module, int]] = {
    "read by others": (Twice(), 2), "different data": (Other(), 2),
    "kernels of which neither holds the other": (Sum(nn.Conv2d(4, 4, (1, 3), padding=(0, 1)), nn.Conv2d(4, 4, (3, 1), padding=(1, 0))), 2),
    "other groups": (Sum(nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, groups=4)), 2),
    "elements between those that the larger one reads": (Sum(nn.Conv2d(4, 4, 3, padding=2, dilation=2), nn.Conv2d(4, 4, 3, padding=1)), 2),
    "one beside a nonlinear branch": (Sum(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()), 1),
    "other strides": (Sum(nn.Conv2d(4, 4, 8, 1, 4), nn.Conv2d(4, 4, 1, 2, 4)), 2),
    "a kernel behind the other": (Sum(Padded((3, 0, 3, 0), nn.Conv2d(4, 4, 2)), Padded((0, 2, 0, 2), nn.Conv2d(4, 4, 1))), 2),
    "a kernel before the other": (Sum(Padded((0, 3, 0, 3), nn.Conv2d(4, 4, 2)), Padded((2, 0, 2, 0), nn.Conv2d(4, 4, 1))), 2),
    "data between elements": (Sum(Padded((1, 3, 1, 3), nn.Conv2d(4, 4, 3, dilation=2)), nn.Identity()), 1),
    "data times an array that is no constant for each channel": (Sum(nn.Conv2d(4, 4, 3, padding=1), Times(torch.rand(6, 6))), 1),
    "numbers alone": (Plus(2, nn.Conv2d(4, 4, 3, padding=1)), 1),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_sums_stay(name: str) -> None:
    model, convolutions = KEPT[name]
    x = torch.randn(1, 4, 6, 6)
    assert operators(model, x).count("conv2d") == convolutions and operators(model, x).count("add") == 1


def test_terms_of_other_shapes_stay() -> None:
    """They are broadcast, so they have another shape than the sum."""
    wide, narrow = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 1, 1)
    x = torch.randn(1, 4, 6, 6)
    assert operators(Sum(wide, narrow), x) == ["conv2d", "conv2d", "add"]
    assert operators(Sum(Sum(narrow, nn.Conv2d(4, 1, 3, padding=1)), wide), x) == ["conv2d", "conv2d", "add"]
    assert operators(Sum(nn.Conv2d(1, 4, 3, padding=1), nn.Identity()), torch.randn(1, 1, 6, 6)) == ["conv2d", "add"]
    assert operators(Sum(nn.Conv2d(4, 4, 3, 2, 1), nn.Identity()), torch.randn(1, 4, 1, 1)) == ["conv2d", "add"]


class Beside(nn.Module):
    """Other functions of the data, or of other data, beside a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.scale = nn.Conv2d(4, 4, 3, padding=1), nn.Parameter(torch.rand(4, 1, 1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        total: Tensor = self.one(x) + y * self.scale + (x - self.scale) + y * 2
        return total


def test_other_functions_stay() -> None:
    x, y = torch.randn(2, 1, 4, 6, 6)
    assert operators(Beside(), x, y).count("mul") == 2 and operators(Beside(), x, y).count("sub") == 1
    agrees(Beside(), x, y)


class TwoSums(nn.Module):
    """Convolutions of two arrays in one sum."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(4, 4, size, padding=size // 2) for size in (1, 3, 3, 1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        one, two, three, four = self.parts
        total: Tensor = one(x) + three(y) + x + (two(x) + 0.5) + 2 * y + four(y) + torch.sigmoid(x)
        return total


def test_each_array_has_a_convolution() -> None:
    x, y = torch.randn(2, 1, 4, 6, 6)
    assert sorted(operators(TwoSums(), x, y)) == ["add", "add", "conv2d", "conv2d", "sigmoid"]
    agrees(TwoSums(), x, y)


def test_a_number_counts_wherever_it_is_added() -> None:
    one, two, x = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1), torch.randn(1, 4, 5, 5)
    for model in (Plus(0.5, Sum(one, two)), Sum(Plus(0.5, one), two), Sum(one, Plus(1, nn.Identity())), Sum(one, Times(2)), Plus(3, Sum(Plus(-1, one), two))):
        assert operators(model, x) == ["conv2d"]
        agrees(model, x)


def test_arrays_count_only_for_each_channel_or_for_all() -> None:
    """Images of 4 x 4 with 4 channels."""
    x, sums = torch.randn(1, 4, 4, 4), Sum(nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1))
    for shape, expected in {(): 0, (1, 1): 0, (4, 1, 1): 0, (1, 4, 1, 1): 0, (4,): 1, (4, 1): 1, (4, 4): 1, (4, 4, 4): 1}.items():
        model = Plus(torch.rand(shape), sums)
        assert operators(model, x) == ["conv2d", *["add"] * expected]
        agrees(model, x)


def test_data_outside_of_the_kernel_stays() -> None:
    """Paddings that no module has."""
    for padding in ((3, -2), (-1, 2)):
        how = {"strides": (1, 1), "padding": (padding[0], 0, padding[1], 0), "dilation": (1, 1), "groups": 1}
        nodes = (Node("c", "conv2d", ("x", "w"), (1, 1, 4, 4), "float32", how), Node("y", "add", ("c", "x"), (1, 1, 4, 4), "float32"))
        graph = Graph({"x": Value((1, 1, 4, 4), "float32")}, {"w": np.ones((1, 1, 2, 1), np.float32)}, nodes, ("y",))
        assert fold_branches(graph).nodes == graph.nodes


@pytest.mark.filterwarnings("error")
def test_weights_that_no_float32_holds_are_not_added() -> None:
    one, two = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)
    for first, second in ((3e38, 3e38), (float("inf"), -float("inf")), (float("nan"), 1.0)):
        nn.init.constant_(one.weight, first)
        nn.init.constant_(two.weight, second)
        assert operators(Sum(one, two), torch.randn(1, 4, 5, 5)) == ["conv2d", "conv2d", "add"]


def test_numbers_that_are_not_finite_are_added_at_the_end() -> None:
    sums, x = Sum(nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)), torch.randn(1, 4, 5, 5)
    for number in (float("inf"), float("nan")):
        assert operators(Plus(number, sums), x) == ["conv2d", "conv2d", "add", "add"]
    assert operators(Plus(3e38, Plus(3e38, sums)), x) == ["conv2d", "conv2d", "add", "add", "add"]


def test_smaller_kernels_are_joined_also_if_the_largest_holds_none() -> None:
    """The first kernel reads every second element."""
    smaller = [nn.Conv2d(4, 4, size, padding=(size[0] // 2, size[1] // 2)) for size in ((3, 3), (1, 3), (3, 3))]
    model = Sum(nn.Conv2d(4, 4, 5, padding=4, dilation=2), *smaller)
    x = torch.randn(1, 4, 6, 6)
    assert operators(model, x) == ["conv2d", "conv2d", "add"]
    agrees(model, x)


def test_double_precision() -> None:
    model, x = Sum(nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1), nn.Identity()).double(), torch.randn(1, 4, 5, 5).double()
    assert operators(model, x) == ["conv2d"]
    agrees(model, x, tolerance=1e-12)


def test_terms_that_are_added_twice_count_twice() -> None:
    shift = torch.rand(4, 1, 1)
    model, x = Plus(shift, Plus(shift, Sum(nn.Conv2d(4, 4, 3, padding=1), nn.Identity(), nn.Identity()))), torch.randn(1, 4, 5, 5)
    assert operators(model, x) == ["conv2d"]
    agrees(model, x)


def test_weights_that_are_inputs_stay() -> None:
    assert operators(Given(), torch.randn(1, 2, 4, 4), torch.randn(2, 2, 1, 1), torch.randn(2, 2, 1, 1)) == ["conv2d", "conv2d", "add"]


def test_kernels_that_are_not_in_the_middle() -> None:
    """Sizes and padding differ in each dimension."""
    model, x = Sum(nn.Conv2d(4, 6, (4, 5), padding=(1, 3)), Padded((2, 2, 0, 0), nn.Conv2d(4, 6, (2, 3)))), torch.randn(2, 4, 7, 6)
    assert operators(model, x) == ["conv2d"]
    agrees(model, x)


def test_a_sum_with_others_keeps_them() -> None:
    """A branch that is no convolution is added to the result, and a block whose data is another block's sum is folded by itself."""
    block = Sum(nn.Conv2d(4, 4, 3, padding=1), nn.Sigmoid(), nn.Conv2d(4, 4, 1), settled(nn.BatchNorm2d(4)), nn.ReLU())
    again = copy.deepcopy(block)
    model, x = nn.Sequential(block, again), torch.randn(1, 4, 5, 5)
    assert sorted(operators(model, x)) == sorted(["conv2d", "sigmoid", "relu", "add", "add"] * 2)
    agrees(model, x)


class Double(Twice):
    """A branch that is added twice."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        first = self.two(x)
        total: Tensor = first + self.one(x) + first
        return total


def test_a_branch_that_is_added_twice_counts_twice() -> None:
    assert operators(Double(), torch.randn(1, 4, 5, 5)).count("conv2d") == 2
    agrees(Double(), torch.randn(1, 4, 5, 5))


def test_long_sums_and_sums_of_themselves_stay() -> None:
    shape = (1, 1, 2, 2)
    how = {"strides": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1}
    nodes = [Node("sum0", "conv2d", ("x", "w"), shape, "float32", how)]
    nodes += [Node(f"sum{place + 1}", "add", (f"sum{place}", f"sum{place}" if place < 60 else "y"), shape, "float32") for place in range(2000)]
    given = {name: Value(shape, "float32") for name in "xy"}
    graph = Graph(given, {"w": np.ones((1, 1, 1, 1), np.float32)}, tuple(nodes), ("sum2000",))
    assert fold_branches(graph).nodes == graph.nodes


def test_bfloat16_stays() -> None:
    """PyTorch rounds every branch, so the sum of the weights is another model."""
    model = Sum(nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1)).bfloat16()
    assert operators(model, torch.randn(1, 4, 5, 5).bfloat16()) == ["conv2d", "conv2d", "add"]
