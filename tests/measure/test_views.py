"""Tensors that are not plain memory: read as what they mean, or refused with a sentence, by each of the ways into a kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import ansor
from ansor.errors import AnsorError
from ansor.measure.kernel import Kernel
from ansor.zoo.operators import matmul

pytestmark = [
    pytest.mark.torch, pytest.mark.compiler,
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"), pytest.mark.filterwarnings("ignore:Sparse CSR tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning"),
]  # fmt: skip
View = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture(scope="module")
def product() -> Kernel:
    found = ansor.auto_schedule(matmul, (16, 16, 16), "cpu -threads=1", trials=0)
    assert isinstance(found, Kernel)
    return found


READ: dict[str, View] = {
    "negated": torch._neg_view,
    "negated and strided": lambda x: torch._neg_view(x).T,
    "negated part": lambda x: torch._neg_view(torch.cat([x, x]))[16:],
    "negated twice": lambda x: torch._neg_view(torch._neg_view(x)),
    "imaginary part of a conjugate": lambda x: torch.complex(x, x).conj().imag,
    "real part of a conjugate": lambda x: torch.complex(x, x).conj().real,
    "expanded": lambda x: x[:1].expand(16, 16),
    "flipped": lambda x: x.flip(0),
    "inference": lambda x: torch.inference_mode()(lambda: x * 2)(),
    "parameter": torch.nn.Parameter,
    "dense from sparse": lambda x: x.to_sparse().to_dense(),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("place", [0, 1])
def test_views_are_read_as_what_they_mean(name: str, place: int, product: Kernel) -> None:
    given = [torch.randn(16, 16), torch.randn(16, 16)]
    given[place] = READ[name](given[place])
    wanted = (given[0].detach() @ given[1].detach()).numpy()
    for other in (given[1 - place], given[1 - place].detach().numpy()):  # straight into the kernel, and by way of NumPy
        mixed = (given[place], other) if place == 0 else (other, given[place])
        with torch.no_grad():  # a parameter requires gradients, which is warned of elsewhere
            found = product(*mixed)
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-4)


REFUSED: dict[str, View] = {
    "sparse": lambda x: x.to_sparse(),
    "sparse rows": lambda x: x.to_sparse_csr(),
    "mkldnn": lambda x: x.to_mkldnn(),
    "meta": lambda x: x.to("meta"),
    "bfloat16": lambda x: x.bfloat16(),
    "half": lambda x: x.half(),
    "complex": lambda x: torch.complex(x, x).conj(),
    "quantised": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "zeros without memory": lambda x: torch._efficientzerotensor((16, 16)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused_with_a_sentence(name: str, product: Kernel) -> None:
    x = torch.randn(16, 16)
    for given in ((REFUSED[name](x), x), (x, REFUSED[name](x)), (x.numpy(), REFUSED[name](x))):
        with pytest.raises(AnsorError, match="'[AB]' (is|must)") as caught:
            product(*given)
        assert isinstance(caught.value, TypeError) and "\n" not in str(caught.value)


def test_transforms_of_pytorch_do_not_reach_memory(product: Kernel) -> None:
    x = torch.randn(16, 16)
    with pytest.raises(AnsorError):
        torch.vmap(lambda one: product(one, x))(torch.randn(3, 16, 16))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)  # type: ignore[no-untyped-call]  # PyTorch's own omission
        np.testing.assert_allclose(np.asarray(product(dual, x)), (x @ x).numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("where", ["first", "second", "out"])
def test_masked_arrays_are_refused(where: str, product: Kernel) -> None:
    x = np.ones((16, 16), np.float32)
    masked = np.ma.masked_array(x, mask=x > 0)
    with pytest.raises(AnsorError, match=r"is a masked array, whose mask would be ignored; pass \.filled\(value\) or \.data"):
        product(masked if where == "first" else x, masked if where == "second" else x, out=masked if where == "out" else None)


def test_out_has_to_be_memory_of_its_own(product: Kernel) -> None:
    x = torch.randn(16, 16)
    with pytest.raises(AnsorError, match="out= for 'C' is a negated view"):
        product(x, x, out=torch._neg_view(torch.zeros(16, 16)))
    with pytest.raises(AnsorError, match="out= for 'C' is expanded"):
        product(x, x, out=torch.zeros(1, 16).expand(16, 16))
