"""Networks of any number of rows: the same results as PyTorch's, in as few batches as there are, and models that cannot be split are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ansor
from ansor.errors import AnsorWarning, ArgumentError, ModelError
from ansor.networks.size_arithmetic import batch_sizes

pytestmark = [pytest.mark.torch, pytest.mark.compiler]


class Classifier(torch.nn.Module):
    """Two inputs with a row each, and nested results."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(50, 8)
        self.classes = torch.nn.Linear(8, 3)

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        found = (self.words(words) * mask[..., None]).sum(1)
        return {"classes": self.classes(found), "best": found.argmax(1)}


class Centred(torch.nn.Module):
    """A row's result is of all rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


class Later(torch.nn.Module):
    """A row's result is of it and of later ones."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flip(0).cumsum(0).flip(0)


class Earlier(torch.nn.Module):
    """A row's result is of it and of earlier ones."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(0)


class Masked(torch.nn.Module):
    """Infinities beside results of all rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x - x.mean(0), torch.full_like(x[:, :1], -torch.inf)], 1)


class Written(torch.nn.Module):
    """Integers of all rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (30000 + (x > x.mean(0)).long() + x.argmax(0)[:1]).expand(len(x), -1).clone()


class Infinite(torch.nn.Module):
    """Infinities and NaN in each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x * 2, torch.full_like(x[:, :1], torch.inf)], 1)


class Counted(torch.nn.Module):
    """A number that is no row."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x * 2, x.shape[0]


class Fixed(torch.nn.Module):
    """Only for four rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(4, -1)


class Summed(torch.nn.Module):
    """One result for all rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum()


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@given(st.integers(0, 200), st.integers(1, 40))
def test_batches_are_as_few_as_sizes_allow_and_have_all_rows(rows: int, largest: int) -> None:
    sizes = batch_sizes(rows, largest)
    assert sum(sizes) == rows
    assert sizes == sorted(sizes, reverse=True)
    small = [size for size in sizes if size != largest]
    assert len(small) == len(set(small)) and all(size & (size - 1) == 0 for size in small)


def test_any_number_of_rows_gives_what_pytorch_gives() -> None:
    model = Classifier().eval()
    words, mask = torch.randint(0, 50, (4, 6)), torch.rand(4, 6)
    net = ansor.compile_batches(model, (words, mask), progress=False, library=False)
    assert sorted(net.networks) == [4]
    for rows in (1, 4, 7, 8):
        words, mask = torch.randint(0, 50, (rows, 6)), torch.rand(rows, 6)
        found, wanted = net(words, mask=mask), model(words, mask)
        assert isinstance(found, dict) and found.keys() == wanted.keys()
        torch.testing.assert_close(found["classes"], wanted["classes"], rtol=1e-4, atol=1e-5)
        assert torch.equal(found["best"], wanted["best"])
    assert sorted(net.networks) == [1, 2, 4]  # 7 rows are 4 + 2 + 1
    assert repr(net) == "BatchedNetwork(up to 4 rows at once; compiled for 4, 2, 1)"


def test_weights_are_in_memory_once() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(5000, 8), torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()
    net = ansor.compile_batches(model, torch.randint(0, 5000, (2, 2)), progress=False, library=False)
    few = torch.randint(0, 5000, (3, 2))
    torch.testing.assert_close(net(few), model(few), rtol=1e-4, atol=1e-5)
    (one,), (other,) = (net.networks[size].constants for size in (1, 2))
    assert one.nbytes == 5000 * 8 * 4 and np.shares_memory(one, other)


def test_arrays_in_arrays_out_and_inputs_by_name() -> None:
    model = torch.nn.Linear(5, 2).eval()
    net = ansor.compile_batches(model, {"input": torch.rand(2, 5)}, progress=False, library=False)
    given = np.random.default_rng(0).random((3, 5), dtype=np.float32)
    found = net(input=given)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, model(torch.from_numpy(given)).detach().numpy(), rtol=1e-4)


@pytest.mark.parametrize("model", [Centred(), Later(), Earlier(), Masked(), Written()])
@pytest.mark.parametrize("rows", [torch.zeros(4, 3), torch.ones(4, 3), torch.arange(12.0).reshape(4, 3), torch.zeros(4, 1)])
def test_rows_that_depend_on_each_other_are_refused(model: torch.nn.Module, rows: torch.Tensor) -> None:
    with pytest.raises(ModelError, match="whose results for a row depend on the other rows; compile it for one size"):
        ansor.compile_batches(model, (rows,), progress=False)


def test_rows_with_infinities_and_nan_can_be_split() -> None:
    net = ansor.compile_batches(Infinite(), (torch.rand(2, 3),), progress=False, library=False)
    x = torch.rand(3, 3)
    assert torch.equal(torch.as_tensor(net(x)), Infinite()(x))


def test_integer_rows_that_are_alike_are_refused() -> None:
    with pytest.raises(ModelError, match="whose rows are all equal; give rows that differ"):
        ansor.compile_batches(torch.nn.Embedding(5, 2), (torch.zeros(4, 3, dtype=torch.long),), progress=False)


def test_a_size_is_not_compiled_of_other_weights() -> None:
    model = torch.nn.Linear(5, 2)
    net = ansor.compile_batches(model, (torch.rand(2, 5),), progress=False, library=False)
    with torch.no_grad():
        model.weight.zero_()
    with pytest.raises(ModelError, match="network for 1 rows after the model's weights have changed; call compile_batches again"), pytest.warns(AnsorWarning):
        net(torch.rand(3, 5))


def test_results_without_rows_are_refused() -> None:
    with pytest.raises(ModelError, match=r"this model's results have the shapes \(\) for 4 rows and \(\) for one"):
        ansor.compile_batches(Summed(), (torch.rand(4, 3),), progress=False)
    with pytest.raises(ModelError, match="results have 4 for 4 rows, and 1 for one"):
        ansor.compile_batches(Counted(), (torch.rand(4, 3),), progress=False)
    with pytest.raises(ModelError, match="fails with one row or with 4: shape"):
        ansor.compile_batches(Fixed(), (torch.rand(4, 3),), progress=False)


def test_a_model_in_training_mode_stays_in_it() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
    with pytest.warns(AnsorWarning, match="Dropout of the model is in training mode"):
        ansor.compile_batches(model, (torch.rand(2, 3),), progress=False, library=False)
    assert model.training and model[1].training


def test_mistakes_are_told() -> None:
    model = torch.nn.Linear(5, 2).eval()
    with pytest.raises(ModelError, match="example inputs of one row"):
        ansor.compile_batches(model, (torch.rand(1, 5),))
    with pytest.raises(ModelError, match=r"the example inputs have the shapes \(4, 6\), \(3, 6\)"):
        ansor.compile_batches(Classifier(), (torch.zeros(4, 6, dtype=torch.long), torch.rand(3, 6)))
    with pytest.raises(ModelError, match="of any batch size of a str; give a PyTorch module"):
        ansor.compile_batches("model.onnx", (torch.rand(2, 5),))
    with pytest.raises(ArgumentError, match="trails"):
        ansor.compile_batches(model, (torch.rand(2, 5),), trails=3)  # type: ignore[call-arg]
    net = ansor.compile_batches(model, (torch.rand(2, 5),), progress=False, library=False)
    with pytest.raises(ModelError, match="was called with 0 rows"):
        net(torch.rand(0, 5))
    with pytest.raises(ModelError, match=r"the inputs of a call have the shapes none"):
        net()
    with pytest.raises(ModelError, match="float32 of shape"):
        net(torch.rand(2, 6))
