"""Inputs whose values matter: indices, and what PyTorch's kernels are compared on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import ansor
from ansor.errors import AnsorError, AnsorWarning, OutOfRangeError
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
ONE = "cpu -threads=1"


class Lookup(nn.Module):
    """What the notes of a first hour with this package tried."""

    def __init__(self, rows: int, features: int = 8) -> None:
        super().__init__()
        self.table, self.linear = nn.Embedding(rows, features), nn.Linear(features, 4)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(self.table(indices))
        return found


@pytest.mark.parametrize(("rows", "dtype", "trials"), [(1, torch.int64, 0), (10, torch.int32, 0), (10, torch.int64, 2), (30522, torch.int64, 0)])
def test_embeddings_through_the_defaults(rows: int, dtype: torch.dtype, trials: int) -> None:
    model, indices = Lookup(rows).eval(), torch.randint(0, rows, (1, 16), dtype=dtype)
    network = ansor.compile(model, (indices,), ONE, trials=trials)
    with torch.no_grad():
        torch.testing.assert_close(network(indices), model(indices))
    for wrong in (-1, rows, 2**31 - 1, -(2**31)):
        indices[0, 7] = wrong
        with pytest.raises(OutOfRangeError, match=f"looks up row {wrong} of a table of {rows} rows; indices have to be from 0 to {rows - 1}"):
            network(indices)
        with pytest.raises(IndexError), torch.no_grad():
            model(indices)
    assert issubclass(OutOfRangeError, AnsorError)


class WithHalves(nn.Module):
    """A table beside a step of a dtype that PyTorch holds from step to step."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 8)

    def forward(self, halves: torch.Tensor, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat((halves, halves)), self.table(indices) * 2


@pytest.mark.filterwarnings("ignore:aten")
def test_after_an_index_out_of_range_nothing_of_the_call_stays() -> None:
    halves, indices = torch.ones(2).to(torch.float8_e4m3fn), torch.tensor([3, 4])
    network = ansor.compile(WithHalves().eval(), (halves, indices), ONE, library=False)
    assert network._loose and network(halves, indices)
    with pytest.raises(OutOfRangeError):
        network(halves, torch.tensor([3, 10]))
    assert [place._tensor for place in network._loose] == [None] * len(network._loose)


def test_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "lookup.py"
    file.write_text(
        "import torch\n"
        "def model(): return torch.nn.Sequential(torch.nn.Embedding(100, 8), torch.nn.Linear(8, 4)).eval()\n"
        "def example_inputs(): return (torch.randint(0, 100, (1, 16)),)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "ansor", "compile", str(file), "--threads", "1"], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


INDEXED: dict[str, tuple[Callable[..., torch.Tensor], Callable[[], tuple[torch.Tensor, ...]]]] = {
    "gather": (lambda x, i: torch.gather(x, 1, i) * 2, lambda: (torch.randn(3, 5), torch.randint(0, 5, (3, 2)))),
    "index_select": (lambda x, i: torch.index_select(x, 0, i) * 2, lambda: (torch.randn(3, 5), torch.randint(0, 3, (4,)))),
    "take": (lambda x, i: torch.take(x, i) * 2, lambda: (torch.randn(3, 5), torch.randint(0, 15, (4,)))),
    "index": (lambda x, i: x[i] * 2, lambda: (torch.randn(3, 5), torch.randint(0, 3, (4,)))),
    "scatter": (lambda x, i, y: x.scatter(1, i, y) * 2, lambda: (torch.randn(3, 5), torch.randint(0, 5, (3, 2)), torch.randn(3, 2))),
    "index_add": (lambda x, i, y: x.index_add(0, i, y) * 2, lambda: (torch.randn(3, 5), torch.randint(0, 3, (4,)), torch.randn(4, 5))),
    "computed": (lambda x, i: nn.functional.embedding(i // 2 + 1, x) * 2, lambda: (torch.randn(9, 5), torch.randint(0, 15, (4,)))),
    "of a table that is an input": (lambda x, i: nn.functional.embedding(i, x) + 1, lambda: (torch.randn(9, 5), torch.randint(0, 9, (2, 4)))),
    "bag": (lambda x, i: nn.functional.embedding_bag(i, x) * 2, lambda: (torch.randn(9, 5), torch.randint(0, 9, (2, 4)))),
    "divisor": (lambda x, i: (x + (100 // i)) * 2, lambda: (torch.randn(3, 5), torch.randint(1, 9, (3, 5)))),
    "lengths": (lambda x, n: (x * (torch.arange(5)[None] < n[:, None])).relu(), lambda: (torch.randn(3, 5), torch.randint(1, 5, (3,)))),
    "one_hot": (lambda x, i: x + nn.functional.one_hot(i, 5), lambda: (torch.randn(3, 5), torch.randint(0, 5, (3,)))),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning")  # most of these run in PyTorch
def test_other_inputs_whose_values_matter(name: str) -> None:
    """Each behind kernels of ours, so that there is something to compare."""
    model, make = INDEXED[name]
    given = make()
    network = ansor.compile(model, given, ONE)
    for _ in range(2):
        torch.testing.assert_close(network(*given), model(*given))
        given = make()


def test_constant_indices_are_looked_at_once(reference: Callable[[ExtractedGraph], CompiledNetwork]) -> None:
    class Positions(nn.Module):
        def __init__(self, count: int) -> None:
            super().__init__()
            self.table, self.count = nn.Embedding(4, 3), count

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = x + self.table(torch.arange(self.count))
            return found

    network = reference(extract(Positions(4), torch.zeros(4, 3)))
    assert network(torch.zeros(4, 3)).shape == (4, 3)  # type: ignore[attr-defined]


def test_examples_that_are_out_of_range_cost_the_comparison_only() -> None:
    model = Lookup(10).eval()
    with pytest.warns(AnsorWarning, match="PyTorch's kernels were not compared with ours, because the network does not run on its example inputs: .*row 99"):
        network = ansor.compile(model, torch.full((1, 4), 99), ONE)
    given = torch.randint(0, 10, (1, 4))
    with torch.no_grad():
        torch.testing.assert_close(network(given), model(given))


def test_exported_programs_without_examples_are_compared_on_zeros() -> None:
    model = Lookup(10).eval()
    given = torch.randint(0, 10, (1, 4))
    program = torch.export.export(model, (given,), strict=False)
    program._example_inputs = None
    with torch.no_grad():
        torch.testing.assert_close(ansor.compile(program, (), ONE)(given), model(given))
