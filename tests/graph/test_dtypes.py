"""Dtypes, layouts and modes that kernels do not have: a result equal to PyTorch's and one warning for each cause, never an error for the whole model."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import ansor
from ansor.errors import AnsorWarning, ModelError
from ansor.graph.dtypes import array_of, value_of
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
ONE = "cpu -threads=1"
Reference = Callable[[ExtractedGraph], CompiledNetwork]
Case = tuple[Callable[..., object], tuple[torch.Tensor, ...], str]  # model, inputs, what the warnings say, one regular expression each


class Mixed(nn.Module):
    """A part in half precision between two in single."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(6, 8), nn.Linear(8, 8).to(dtype), nn.Linear(8, 4)
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.middle(self.first(x).relu().to(self.dtype)).float().relu())
        return found


class Spectrum(nn.Module):
    """A complex weight between transforms."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.fft.irfft(torch.fft.rfft(x * 2) * self.weight.conj()).relu()
        return found


class Weights(nn.Module):
    """Results that are constants, and several of them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4).bfloat16())

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"weight": self.weight, "sum": x + self.weight.sum(0), "input": x, "halves": torch.split(x, 2, 1)[1]}


def of(dtype: torch.dtype) -> str:
    return f"networks have no kernels of dtype {str(dtype).removeprefix('torch.')}; use float32$"


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


def said(dtype: torch.dtype) -> str:
    """Nothing of what kernels have."""
    return "" if dtype is BF else of(dtype)


HALF, BF, COMPLEX, DOUBLE = torch.float16, torch.bfloat16, torch.complex64, torch.complex128
CASES: dict[str, Callable[[], Case]] = {
    **{f"linear {d}": lambda d=d: (nn.Linear(6, 4).to(d), (floats(2, 6, dtype=d),), said(d)) for d in (HALF, BF)},  # type: ignore[misc]
    **{f"convolution {d}": lambda d=d: (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval().to(d),  # type: ignore[misc]
                                        (floats(1, 3, 6, 6, dtype=d),), said(d)) for d in (HALF, BF)},
    **{f"attention {d}": lambda d=d: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval().to(d),  # type: ignore[misc]
                                      (floats(1, 5, 8, dtype=d),), said(d)) for d in (HALF, BF)},
    **{f"embedding {d}": lambda d=d: (nn.Embedding(9, 4).to(d), (torch.randint(0, 9, (2, 3)),), said(d)) for d in (HALF, BF)},  # type: ignore[misc]
    **{f"mixed {d}": lambda d=d: (Mixed(d), (floats(2, 6),), said(d)) for d in (HALF, BF)},  # type: ignore[misc]
    "double": lambda: (nn.Linear(6, 4).double(), (floats(2, 6).double(),), ""),
    "notes: bfloat16 product": lambda: (lambda t: (t.bfloat16() @ t.bfloat16().T).float(), (floats(10, 4),), ""),
    "notes: fft": lambda: (lambda x: torch.fft.fft(x).abs(), (floats(4, 16),), of(COMPLEX)),
    "both halves": lambda: (lambda x: x.half().sin().float() + x.bfloat16().cos().float(), (floats(4),), of(HALF)),
    "spectrum": lambda: (Spectrum(), (floats(3, 8),), of(COMPLEX)),
    "complex in and out": lambda: (lambda z: z.conj() * 2j, (floats(3, 4, dtype=COMPLEX),), of(COMPLEX)),
    "double complex": lambda: (lambda x: torch.view_as_complex(x).angle(), (floats(3, 2).double(),), of(DOUBLE)),
    "imaginary part": lambda: (lambda x: torch.fft.fft(x).conj().imag.relu(), (floats(8),), f"_neg_view.*no translation|{of(COMPLEX)}"),
    "float8": lambda: (lambda x: x.to(torch.float8_e4m3fn).to(torch.float32).relu(), (floats(3, 4),), of(torch.float8_e4m3fn)),
    "bfloat16 results": lambda: (Weights(), (floats(3, 4, dtype=BF),), ""),
    "views of memory": lambda: (lambda x: (x.view(BF)[:, 1::2].float(), x + 1), (floats(3, 4),), "there is no translation into kernels$"),
    "double and single": lambda: (lambda x, y: (x.double() @ y).float().relu(), (floats(3, 4), floats(4, 2).double()), ""),
    "unsigned": lambda: (lambda x: x.to(torch.uint16).to(torch.int32) + 1, (torch.arange(5),), of(torch.uint16)),
    "sparse inside": lambda: (lambda x: torch.sparse.mm(x.relu().to_sparse(), x.T.contiguous()).relu(), (floats(3, 4),),
                              "of dtype sparse_coo float32; use dense tensors$"),
    "dropout in training mode": lambda: (nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.9)), (floats(2, 6),), "^Dropout of the model is in training mode, but"),
    "norm in training mode": lambda: (nn.Sequential(nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3)), (floats(1, 2, 9),), "^BatchNorm1d of the model is in"),
    "norm of a part in training mode": lambda: (nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)).eval().append(nn.Dropout()), (floats(2, 6),),
                                                "^Dropout of the model is in training mode"),
    "mode in a function": lambda: (Own(), (floats(2, 6),), "^Own of the model is in training mode"),
    "training mode without meaning": lambda: (nn.Sequential(nn.Linear(6, 4), nn.ReLU()).train(), (floats(2, 6),), ""),
}


class Own(nn.Module):
    """Looks at its mode in code of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x.relu(), 0.5, self.training)


@pytest.mark.parametrize("name", CASES)
def test_results_are_equal_and_each_cause_is_said_once(name: str) -> None:
    model, given, said = CASES[name]()
    training = isinstance(model, nn.Module) and model.training
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", AnsorWarning)
        network = ansor.compile(model, given, ONE, library=False)
    causes = [str(one.message) for one in found if one.category is AnsorWarning]
    patterns = said.split("|") if said else []
    assert len(causes) == len(patterns) and all(any(re.search(pattern, cause) for cause in causes) for pattern in patterns), causes
    assert all(one.filename == __file__ for one in found if one.category is AnsorWarning)
    if isinstance(model, nn.Module):
        assert model.training is training
        model.eval()
    with torch.no_grad():
        wanted = model(*given)
        for _ in range(2):
            compare(network(*given), wanted)


def compare(found: object, wanted: object) -> None:
    wanted_leaves, wanted_tree = pytree.tree_flatten(wanted)
    found_leaves, found_tree = pytree.tree_flatten(found)
    assert found_tree == wanted_tree
    for one, other in zip(found_leaves, wanted_leaves, strict=True):
        assert one.dtype == other.dtype
        tolerance = {HALF: 2e-3, BF: 2e-2}.get(one.dtype, 1e-4)
        torch.testing.assert_close(one, other.resolve_conj().resolve_neg(), rtol=tolerance, atol=tolerance)


def test_values_that_numpy_lacks_belong_to_the_call(reference: Reference) -> None:
    """Results are the caller's own, inputs are left alone, and nothing is kept after the call."""
    with pytest.warns(AnsorWarning, match="float8_e5m2"):
        network = reference(extract(lambda x: (x, x.clone()), torch.zeros(3).to(torch.float8_e5m2)))
    given = torch.ones(3).to(torch.float8_e5m2)
    results = network(given)
    assert isinstance(results, tuple)
    first, second = results
    first.zero_()
    assert given.float().tolist() == second.float().tolist() == [1, 1, 1]
    with pytest.raises(ModelError, match=r"float32 of shape \(3,\); it was compiled for float8_e5m2"):
        network(torch.ones(3))


def test_views_and_arrays_of_other_kinds(reference: Reference) -> None:
    network = reference(extract(lambda x: x + 1, torch.zeros(2, 3)))
    x = torch.randn(2, 3)
    for view in (torch._neg_view(x), torch.complex(x, x).conj().imag, x[:1].expand(2, 3), x.T.contiguous().T):
        assert torch.equal(network(view), view + 1)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"being sparse_coo float32 of shape \(2, 3\); it was compiled for float32"):
        network(x.to_sparse())
    with pytest.raises(ModelError, match="on the device meta, which holds no values"):
        network(x.to("meta"))
    with pytest.raises(ModelError, match="masked array as x, whose mask would be ignored"):
        network(np.ma.masked_array(x.numpy(), mask=x.numpy() > 0))
    with pytest.raises(ModelError, match="being bfloat16"):
        network(x.bfloat16())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_are_refused_as_sparse_ones_are(reference: Reference) -> None:
    """PyTorch's own say that they are strided, and raise when they are asked for their shape."""
    network = reference(extract(lambda x: x + 1, torch.zeros(2, 3)))
    rows = [torch.zeros(3), torch.ones(3)]
    for given, shape in (
        (torch.nested.nested_tensor(rows), r"\(2, -1\)"), (torch.nested.nested_tensor([rows[0], rows[0][:1]]), r"\(2, -1\)"),
        (torch.nested.nested_tensor([torch.zeros(1, 2), torch.zeros(3, 2)]), r"\(2, -1, -1\)"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=f"being nested float32 of shape {shape}; it was compiled for float32 of shape .*: convert the input, or compile"):
            network(given)
    with pytest.raises(ModelError, match=r"being jagged float32 of shape .*; it was compiled for float32"):
        network(torch.nested.nested_tensor(rows, layout=torch.jagged))
    with pytest.raises(ModelError, match="being nested float64"):
        network(torch.nested.nested_tensor([row.double() for row in rows]))


def test_every_result_has_memory_of_its_own(reference: Reference) -> None:
    def twice(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return y, y, y.view(-1), y[0], x

    x = torch.zeros(2, 3)
    results = reference(extract(twice, x))(x)
    assert isinstance(results, tuple) and all(torch.equal(one, other) for one, other in zip(results, twice(x), strict=True))
    results[0].fill_(7)
    assert all(torch.equal(one, other) for one, other in zip(results[1:], twice(x)[1:], strict=True)) and not x.any()
    assert len({one.untyped_storage().data_ptr() for one in (*results, x)}) == 6


def test_what_a_tensor_is() -> None:
    assert (value_of(torch.zeros(2, dtype=torch.bfloat16)).dtype, value_of(torch.zeros(2).to_sparse()).dtype) == ("bfloat16", "sparse_coo float32")
    x = torch.randn(3, 2)
    for tensor in (x, x.T, torch._neg_view(x), torch.complex(x, x).conj(), x[0, 0]):
        array = array_of(tensor)
        assert array.flags.c_contiguous and np.array_equal(array, tensor.resolve_conj().resolve_neg().numpy())
        assert not np.shares_memory(array, x.numpy())
