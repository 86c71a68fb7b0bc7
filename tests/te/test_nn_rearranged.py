"""Space and channels, images made larger, zeros in between: against PyTorch and NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]


def as_layout(run: Run, function: Callable[..., te.Tensor], layout: str, data: NDArray[np.float32]) -> NDArray[np.float32]:
    """The result for NCHW data, computed in `layout`."""
    if layout == "NCHW":
        return run(function, data)
    return run(function, data.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_depth_and_space(run: Run, array: Run, block: int, layout: str) -> None:
    import torch

    data = array(2, block * block * 2, 3, 4)
    want = torch.pixel_shuffle(torch.from_numpy(data), block).numpy()
    np.testing.assert_array_equal(as_layout(run, lambda x: nn.depth_to_space(x, block, layout, "CRD"), layout, data), want)
    columns = data.reshape(2, block, block, 2, 3, 4).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 3 * block, 4 * block)
    np.testing.assert_array_equal(as_layout(run, lambda x: nn.depth_to_space(x, block, layout), layout, data), columns)
    np.testing.assert_array_equal(as_layout(run, lambda x: nn.space_to_depth(x, block, layout), layout, columns), data)


@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 1)])
@pytest.mark.parametrize("shape", [(3, 4), (1, 5)])
def test_dilate(run: Run, array: Run, shape: tuple[int, int], strides: tuple[int, int]) -> None:
    data = array(*shape)
    want = np.full([(n - 1) * s + 1 for n, s in zip(shape, strides, strict=True)], 7, np.float32)
    want[:: strides[0], :: strides[1]] = data
    np.testing.assert_array_equal(run(lambda x: nn.dilate(x, strides, 7), data), want)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("method", "corners"), [("nearest_neighbor", False), ("bilinear", False), ("bilinear", True)])
@pytest.mark.parametrize("scales", [(2, 2), (3, 1), (1.5, 2.5)])
def test_upsampling(run: Run, array: Run, scales: tuple[float, float], method: str, corners: bool, layout: str) -> None:
    import torch

    data = array(2, 3, 4, 6)
    size = tuple(round(n * s) for n, s in zip(data.shape[2:], scales, strict=True))
    mode, extra = ("nearest", {}) if method == "nearest_neighbor" else ("bilinear", {"align_corners": corners})
    want = torch.nn.functional.interpolate(torch.from_numpy(data), size=size, mode=mode, **extra).numpy()
    got = as_layout(run, lambda x: nn.upsampling(x, *scales, layout, method, corners), layout, data)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


X = te.placeholder((1, 3, 4, 5), name="X")


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: nn.depth_to_space(X, 2), "the 3 channels have to be a multiple of 4"),
        (lambda: nn.depth_to_space(X, 1, mode="ABC"), "the mode is 'DCR' or 'CRD'"),
        (lambda: nn.space_to_depth(X, 2), "height and width have to be multiples of it"),
        (lambda: nn.dilate(X, (1, 2)), "give 4 integers of at least 1"),
        (lambda: nn.upsampling(X, 2, 2, method="bicubic"), "it is 'nearest_neighbor' or 'bilinear'"),
    ],
)
def test_what_is_refused(declare: Callable[[], object], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        declare()
