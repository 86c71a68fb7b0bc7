"""The derivative of pooling, against PyTorch's."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 0), ((3, 2), (2, 3), (1, 0)), (1, 2, 0)])
@pytest.mark.parametrize(("pool_type", "ceil_mode", "include"), [("max", False, True), ("max", True, True), ("avg", False, True),
                                                                   ("avg", False, False), ("avg", True, False)])
def test_two_dimensions(run: Run, array: Run, kernel: int, stride: int, padding: int, pool_type: str, ceil_mode: bool, include: bool, layout: str) -> None:
    import torch

    data = array(2, 3, 7, 8)
    leaf = torch.from_numpy(data).requires_grad_()
    if pool_type == "max":
        pooled = torch.nn.functional.max_pool2d(leaf, kernel, stride, padding, ceil_mode=ceil_mode)
    else:
        pooled = torch.nn.functional.avg_pool2d(leaf, kernel, stride, padding, ceil_mode, include)
    grads = array(*pooled.shape)
    pooled.backward(torch.from_numpy(grads))  # type: ignore[no-untyped-call]
    assert leaf.grad is not None
    order = (0, 1, 2, 3) if layout == "NCHW" else (0, 2, 3, 1)
    got = run(lambda g, x: nn.pool_grad(g, x, kernel, stride, padding, pool_type, ceil_mode, layout, include), grads.transpose(order), data.transpose(order))
    np.testing.assert_allclose(got, leaf.grad.numpy().transpose(order), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pool_type", ["max", "avg"])
def test_one_and_three_dimensions(run: Run, array: Run, pool_type: str) -> None:
    import torch

    for function, shape in ((f"{pool_type}_pool1d", (2, 3, 9)), (f"{pool_type}_pool3d", (1, 2, 4, 5, 6))):
        leaf = torch.from_numpy(array(*shape)).requires_grad_()
        pooled = getattr(torch.nn.functional, function)(leaf, 3, 2, 1)
        grads = array(*pooled.shape)
        pooled.backward(torch.from_numpy(grads))
        assert leaf.grad is not None
        layout = {3: "NCW", 5: "NCDHW"}[len(shape)]
        got = run(lambda g, x, layout=layout: nn.pool_grad(g, x, 3, 2, 1, pool_type, layout=layout), grads, leaf.detach().numpy())
        np.testing.assert_allclose(got, leaf.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_of_equal_maxima_the_first(run: Run) -> None:
    got = run(lambda g, x: nn.pool_grad(g, x, 2, 2, 0, "max"), np.full((1, 1, 1, 1), 3, np.float32), np.ones((1, 1, 2, 2), np.float32))
    assert got.ravel().tolist() == [3, 0, 0, 0]


def test_what_is_refused() -> None:
    data = te.placeholder((1, 2, 4, 4), name="D")
    with pytest.raises(DeclarationError, match=r"it has to be float32 of shape \(1, 2, 2, 2\), which the pooling has"):
        nn.pool_grad(data, data, 2, 2, 0, "max")
    with pytest.raises(DeclarationError, match="it is 'max' or 'avg'"):
        nn.pool_grad(data, data, 2, 2, 0, "sum")
