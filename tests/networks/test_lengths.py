"""Networks of any length: the same results as PyTorch's, padded to as few lengths as are asked for, and mistakes are told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import ansor
from ansor.errors import ArgumentError, ModelError
from ansor.graph import attention
from ansor.graph.lengths import Masks
from ansor.networks.lengths import AnyLengthNetwork
from ansor.networks.network_kernel import NetworkKernel

pytestmark = [pytest.mark.torch, pytest.mark.compiler]


def compiled(model: object, inputs: Any, **options: Any) -> AnyLengthNetwork:
    return ansor.compile_lengths(model, inputs, "cpu -threads=1", progress=False, library=False, **options)


class Reader(torch.nn.Module):
    """Words and a mask, one layer of attention, and nested results, some of them of fixed shape."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(50, 16), torch.nn.Parameter(torch.randn(64, 16))
        self.query, self.value = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

    def forward(self, words: torch.Tensor, mask: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        x = self.words(words) + self.places[: words.shape[1]]
        scores = self.query(x) @ x.transpose(1, 2)
        if mask is not None:
            scores = scores.masked_fill(mask[:, None] == 0, -1e9)
        found = scores.softmax(2) @ self.value(x)
        return {"states": found, "mean": found.mean(1), "best": found.sum(2).argmax(1), "last": found[:, -1]}


class Branching(torch.nn.Module):
    """Computes differently for a few lengths."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__()
        self.low, self.high = low, high

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.softmax(1) if self.low <= x.shape[1] <= self.high else x.tanh()


class Ends(torch.nn.Module):
    """Adds up elements at one of the ends."""

    def __init__(self, chosen: slice) -> None:
        super().__init__()
        self.chosen = chosen

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, self.chosen].sum(1)


class Even(torch.nn.Module):
    """Adds up an even number of elements."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : x.shape[1] // 2 * 2].sum(1)


class Greatest(torch.nn.Module):
    """The greatest element."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(1)


class Failing(torch.nn.Module):
    """Does not take every length."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] == self.length:
            raise ValueError(f"{self.length} are too many")
        return x.softmax(1)


def test_calls_of_every_length() -> None:
    model = Reader().eval()
    words, mask = torch.randint(0, 50, (2, 24)), (torch.rand(2, 24) > 0.2).long()
    mask[:, 0] = 1
    net = compiled(model, (words, mask))
    assert net.lengths == (16, 24) and list(net.networks) == [24]
    for length in (24, 23, 17, 16, 15, 2, 1):
        with torch.no_grad():
            assert_close(net(words[:, :length], mask=mask[:, :length]), model(words[:, :length], mask[:, :length]), rtol=1e-4, atol=1e-5)
    assert sorted(net.networks) == [16, 24] and repr(net) == "AnyLengthNetwork(lengths up to 24; compiled for 24, 16)"


def test_weights_that_are_packed_alike_are_in_memory_once() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.ReLU(), torch.nn.Linear(512, 128)).eval()
    x = torch.randn(1, 24, 128)
    net = compiled(model, (x,))
    for length in (24, 12):
        assert_close(net(x[:, :length]), model(x[:, :length]), rtol=1e-4, atol=1e-5)
    weights = [one for made in net.networks.values() for one in made.network.constants]
    for one in weights:
        assert sum(np.array_equal(one.view(np.uint8), other.view(np.uint8)) for other in {each.ctypes.data: each for each in weights}.values()) == 1
    kernels = [one.kernel for made in net.networks.values() for one in made.network.kernels if isinstance(one, NetworkKernel)]
    packed = [one.physical_size * 4 for kernel in kernels for one in kernel.arguments if one.pack is not None]
    assert len(weights) == 4 and sorted(one.nbytes for one in weights) == sorted(packed)
    for one in weights:  # the numbers of a layer's weights, and zeros where a tile does not divide an axis
        layers = [value.detach().numpy().ravel() for value in model.parameters() if value.dim() == 2]
        assert any(np.array_equal(np.sort(one), np.sort(np.r_[layer, np.zeros(one.size - layer.size, np.float32)])) for layer in layers)


def test_numpy_in_and_out() -> None:
    net = compiled(Branching(1, 99), (torch.randn(2, 12),), lengths=[6])
    given = np.random.default_rng(0).standard_normal((2, 5), np.float32)
    found = net(given)
    assert net.lengths == (6, 12) and sorted(net.networks) == [6, 12] and isinstance(found, np.ndarray) and found.flags.c_contiguous
    assert_close(torch.from_numpy(found), torch.from_numpy(given).softmax(1))


def test_text_models_unmodified() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, intermediate_size=32)
    model, words = transformers.LlamaForCausalLM(config).eval(), torch.randint(0, 50, (2, 20))
    mask = torch.ones_like(words)
    mask[0, :3] = 0
    net = compiled(model, {"input_ids": words, "attention_mask": mask, "use_cache": False}, lengths=[20])
    for length in (20, 13, 4):
        with torch.no_grad():
            wanted = model(input_ids=words[:, :length], attention_mask=mask[:, :length], use_cache=False)
        found = net(input_ids=words[:, :length], attention_mask=mask[:, :length], use_cache=False)
        assert type(found) is type(wanted)
        assert_close(found.logits, wanted.logits, rtol=1e-4, atol=1e-5)  # type: ignore[attr-defined]


def test_long_attention_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in (("KEPT_BYTES", 4096), ("BLOCK_BYTES", 2048), ("FEWEST_ROWS", 8)):
        monkeypatch.setattr(attention, limit, value)
    model, words = Reader().eval(), torch.randint(0, 50, (1, 64))
    net = compiled(model, (words,), lengths=[64])
    assert sum("softmax" in name for name, _ in net.networks[64].network.steps) > 1
    for length in (64, 40, 1):
        with torch.no_grad():
            assert_close(net(words[:, :length]), model(words[:, :length]), rtol=1e-4, atol=1e-5)


def test_inputs_by_name_and_fixed_ones() -> None:
    class Weighed(torch.nn.Module):
        def forward(self, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
            return (x.softmax(0) @ weights).relu()

    x, weights = torch.randn(12, 12), torch.randn(12, 12)
    net = compiled(Weighed(), (x, weights), dimension={"x": 0}, lengths=[12])
    assert_close(net(x[:7], weights), Weighed()(x[:7], weights))
    with pytest.raises(ModelError, match="any length of the input y, which is not among the example inputs: x, weights"):
        compiled(Weighed(), (x, weights), dimension={"y": 0})


def test_a_network_of_one_length_is_saved_and_takes_the_length(tmp_path: Path) -> None:
    net = compiled(Branching(1, 99), (torch.randn(2, 12),), lengths=[12])
    padded = net.networks[12]
    loaded = ansor.load(padded.network.save(tmp_path / "saved"))
    given = np.random.default_rng(0).standard_normal((2, 12), np.float32)
    found = np.asarray(loaded(given, **{padded.padding.keyword: np.asarray([5], np.int32)}))[:, :5]
    assert_close(torch.from_numpy(np.ascontiguousarray(found)), torch.from_numpy(given[:, :5]).softmax(1))


def test_a_model_that_computes_differently_for_some_lengths_is_refused() -> None:
    with pytest.raises(ModelError, match="computes differently for 12 and for 2"):
        compiled(Branching(2, 4), (torch.randn(2, 12),), lengths=[12])
    with pytest.raises(ModelError, match="gives other results for the length 7 than its operators for the length 12"):
        compiled(Branching(6, 8), (torch.randn(2, 12),), lengths=[12])
    with pytest.raises(ModelError, match="gives other results for the length 9 than its operators for the length 16"):
        compiled(Even(), (torch.randn(2, 16),), lengths=[16])
    with pytest.raises(ModelError, match="cannot be read for the length 11 .*11 are too many"):
        compiled(Failing(11), (torch.randn(2, 12),), lengths=[10])
    with pytest.raises(ModelError, match=r"fails for the length 7 \(7 are too many\)"):
        compiled(Failing(7), (torch.randn(2, 12),), lengths=[12])


@pytest.mark.parametrize("model", [Branching(2, 99), Failing(1)])
def test_a_single_element_may_be_a_case_of_its_own(model: torch.nn.Module) -> None:
    net = compiled(model, (torch.randn(2, 12),), lengths=[12])
    x = torch.randn(2, 2)
    assert_close(net(x), model(x))
    with pytest.raises(ModelError, match="inputs of the length 1, but the model needs at least 2"):
        net(x[:, :1])


def test_changed_weights_are_noticed() -> None:
    model, words = Reader().eval(), torch.randint(0, 50, (1, 20))
    net = compiled(model, (words,))
    with torch.no_grad():
        model.query.weight.add_(1)
    with pytest.raises(ModelError, match="for the length 16 after the model's weights have changed; call compile_lengths again"):
        net(words[:, :3])


@pytest.fixture(scope="module")
def reader() -> AnyLengthNetwork:
    return compiled(Reader().eval(), (torch.randint(0, 50, (2, 12)), torch.ones(2, 12)), lengths=[12])


@pytest.mark.parametrize(
    ("words", "mask", "why"),
    [
        ((2, 13), (2, 13), "the length 13, and takes 1 to 12; for more, give longer example inputs"), ((2, 0), (2, 0), "the length 0, and takes 1"),
        ((2, 5), (2, 6), r"one other length, in dimension 1; the inputs of a call have \(2, 5\) for \(2, 12\), \(2, 6\) for \(2, 12\)"),
        ((12,), (2, 12), r"have \(12,\) for \(2, 12\)"), ((3, 5), (3, 5), r"have \(3, 5\) for \(2, 12\)"), ((2, 5), None, r"\(2, 5\) for \(2, 12\), None"),
    ],
)  # fmt: skip
def test_calls_that_do_not_fit(reader: AnyLengthNetwork, words: tuple[int, ...], mask: tuple[int, ...] | None, why: str) -> None:
    with pytest.raises(ModelError, match=why):
        reader(torch.zeros(words, dtype=torch.long), *([] if mask is None else [torch.ones(mask)]))


def test_models_that_need_several_elements() -> None:
    for model in (Ends(slice(6)), Ends(slice(-6, None))):
        net = compiled(model, (torch.randn(2, 20),))
        for length in (20, 13, 6):
            x = torch.randn(2, length)
            assert_close(net(x), model(x))
        with pytest.raises(ModelError, match="inputs of the length 5, but the model needs at least 6"):
            net(torch.randn(2, 5))


def test_results_are_compared_beside_something_else_beyond_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Masks, "masked", lambda self, name, spans, value: self.write.now(name))
    torch.manual_seed(0)
    with pytest.raises(ModelError, match="gives other results for the length 2 than its operators for the length 12"):
        compiled(Greatest(), (torch.randn(2, 12),), lengths=[12])


def test_a_parameter_called_length() -> None:
    class Named(torch.nn.Module):
        def forward(self, x: torch.Tensor, length: torch.Tensor | None = None) -> torch.Tensor:
            return x.softmax(1) if length is None else x.softmax(1) * length

    x, length = torch.randn(2, 12), torch.randn(2, 1)
    net = compiled(Named(), {"x": x, "length": length}, lengths=[12])
    assert_close(net(x=x[:, :7], length=length), Named()(x[:, :7], length))
    assert_close(compiled(Named(), (x,), lengths=[12])(x[:, :7]), Named()(x[:, :7]))


def test_calls_from_several_threads() -> None:
    model = Reader().eval()
    net, words = compiled(model, (torch.randint(0, 50, (1, 24)),)), torch.randint(0, 50, (1, 24))
    lengths = [24, 3, 17, 9, 20, 16, 5, 23]
    with torch.no_grad(), ThreadPoolExecutor(4) as pool:
        wanted = [model(words[:, :length]) for length in lengths]
        for found, one in zip(pool.map(lambda length: net(words[:, :length]), lengths), wanted, strict=True):
            assert_close(found, one, rtol=1e-4, atol=1e-5)


def test_too_few_elements() -> None:
    class Third(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, 2] + x[:, -1]

    net = compiled(Third(), (torch.randn(2, 12),), lengths=[12])
    with pytest.raises(ModelError, match="inputs of the length 2, but the model needs at least 3"):
        net(torch.randn(2, 2))
    x = torch.randn(2, 3)
    assert_close(net(x), x[:, 2] + x[:, -1])


def test_arguments_that_make_no_network() -> None:
    model = Branching(1, 99)
    with pytest.raises(ModelError, match="of the length 1; give the longest"):
        compiled(model, (torch.randn(2, 1),))
    with pytest.raises(ModelError, match="no tensor among the example inputs has the dimension that should vary"):
        compiled(model, (torch.randn(3),))
    with pytest.raises(ModelError, match="asked for the length 13; give whole numbers from 2 to 12"):
        compiled(model, (torch.randn(2, 12),), lengths=[13])
    for wrong in (-1, "1", {"x": -1}, True):
        with pytest.raises(ArgumentError, match="asked for dimension=.*; give the number of a dimension, from 0 on"):
            compiled(model, (torch.randn(2, 12),), dimension=wrong)
    with pytest.raises(ArgumentError, match="asked for lengths=20; give a list"):
        compiled(model, (torch.randn(2, 12),), lengths=20)
    with pytest.raises(ModelError, match="asked for the length 1; give whole numbers from 2"):
        compiled(model, (torch.randn(2, 12),), lengths=[1, 4])
    with pytest.raises(ModelError, match="of a function; give a PyTorch module"):
        compiled(lambda x: x.softmax(1), (torch.randn(2, 12),))
    with pytest.raises(ArgumentError, match="trails"):
        compiled(model, (torch.randn(2, 12),), trails=3)
