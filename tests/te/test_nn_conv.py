"""Convolutions against PyTorch, in both layouts."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.expr import Reduce
from ansor.te.nn.layout import Padding, Sizes
from ansor.te.tensor import Tensor

Floats = NDArray[np.float32]
LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
CONVS = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}


def expected(data: Floats, kernel: Floats, stride: Sizes, padding: Padding, dilation: Sizes, groups: int) -> Floats:
    import torch
    import torch.nn.functional as functional

    rank = data.ndim - 2
    assert not isinstance(padding, str)
    pads = (padding,) * rank if isinstance(padding, int) else tuple(padding)
    before, after = (pads, pads) if len(pads) == rank else (pads[:rank], pads[rank:])
    padded = functional.pad(torch.from_numpy(data), [p for k in reversed(range(rank)) for p in (before[k], after[k])])
    conv = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[rank]
    result: Floats = conv(padded, torch.from_numpy(kernel), None, stride, 0, dilation, groups).numpy()
    return result


def last(array: Floats) -> Floats:
    """Channels first to channels last."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


@pytest.mark.torch
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), ((2, 1), (1, 2), 1), (2, (1, 0, 2, 1), (2, 1))])
def test_conv2d(run: Callable[..., Floats], array: Callable[..., Floats], stride: Sizes, padding: Padding, dilation: Sizes, groups: int) -> None:
    data, kernel = array(2, 6, 8, 7), array(12, 6 // groups, 3, 2)
    want = expected(data, kernel, stride, padding, dilation, groups)
    got = run(lambda d, k: nn.conv2d(d, k, stride, padding, dilation, groups), data, kernel)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    kernel_hwio = np.ascontiguousarray(kernel.transpose(2, 3, 1, 0))
    got = run(lambda d, k: nn.conv2d(d, k, stride, padding, dilation, groups, "NHWC"), last(data), kernel_hwio)
    np.testing.assert_allclose(got, last(want), rtol=1e-4, atol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("groups", [1, 4])
def test_conv1d_and_conv3d(run: Callable[..., Floats], array: Callable[..., Floats], rank: int, groups: int) -> None:
    data, kernel = array(1, 4, *(7, 6, 5)[:rank]), array(8, 4 // groups, *(3, 2, 3)[:rank])
    want = expected(data, kernel, 2, 1, 1, groups)
    first, channels_last = LAYOUTS[rank]
    got = run(lambda d, k: CONVS[rank](d, k, 2, 1, 1, groups, first), data, kernel)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    turned = np.ascontiguousarray(np.moveaxis(kernel, (0, 1), (-1, -2)))
    got = run(lambda d, k: CONVS[rank](d, k, 2, 1, 1, groups, channels_last), last(data), turned)
    np.testing.assert_allclose(got, last(want), rtol=1e-4, atol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise(run: Callable[..., Floats], array: Callable[..., Floats], multiplier: int) -> None:
    data, kernel = array(1, 4, 6, 5), array(4, multiplier, 3, 3)
    want = expected(data, kernel.reshape(4 * multiplier, 1, 3, 3), 2, 1, 1, 4)
    got = run(lambda d, k: nn.depthwise_conv2d_nchw(d, k, 2, 1), data, kernel)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    got = run(lambda d, k: nn.depthwise_conv2d_nhwc(d, k, 2, 1), last(data), np.ascontiguousarray(kernel.transpose(2, 3, 0, 1)))
    np.testing.assert_allclose(got, last(want), rtol=1e-4, atol=1e-5)


@pytest.mark.torch
def test_short_names_words_and_other_kernel_layouts(run: Callable[..., Floats], array: Callable[..., Floats]) -> None:
    data, kernel = array(1, 3, 6, 5), array(2, 3, 3, 3)
    want = expected(data, kernel, 1, 1, 1, 1)
    hwio = np.ascontiguousarray(kernel.transpose(2, 3, 1, 0))
    np.testing.assert_allclose(run(lambda d, k: nn.conv2d_nchw(d, k, 1, "SAME"), data, kernel), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run(lambda d, k: nn.conv2d_nhwc(d, k, 1, 1), last(data), hwio), last(want), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run(lambda d, k: nn.conv2d(d, k, 1, 1, kernel_layout="HWIO"), data, hwio), want, rtol=1e-4, atol=1e-5)
    valid = run(lambda d, k: nn.conv2d(d, k, padding="VALID"), data, kernel)
    np.testing.assert_allclose(valid, want[:, :, 1:-1, 1:-1], rtol=1e-4, atol=1e-5)


def test_small_integers_are_multiplied_in_the_output_dtype(run: Callable[..., NDArray[np.int32]]) -> None:
    data = np.full((1, 64, 3, 3), 127, np.uint8)
    kernel = np.full((1, 64, 3, 3), -128, np.int8)
    got = run(lambda d, k: nn.conv2d(d, k, out_dtype="int32"), data, kernel)
    assert got.dtype == np.int32 and got.item() == 127 * -128 * 64 * 9


def axes(tensor: Tensor) -> tuple[list[str], list[str]]:
    assert tensor.compute is not None
    return [axis.name for axis in tensor.compute.axes], [axis.name for axis in tensor.compute.reduce_axes]


def sources(tensor: Tensor) -> list[str]:
    from ansor.te.fold import walk
    from ansor.te.tensor import Read

    assert tensor.compute is not None
    return [node.tensor.name for node in walk(tensor.compute.body) if isinstance(node, Read)]


def test_stages_and_loops() -> None:
    data, kernel = te.placeholder((1, 8, 6, 6), name="data"), te.placeholder((4, 8, 3, 3), name="kernel")
    padded = nn.conv2d(data, kernel, 1, 1)
    assert sources(padded) == ["pad", "kernel"]
    assert axes(padded) == (["n", "co", "h", "w"], ["rc", "rh", "rw"])
    assert sources(nn.conv2d(data, kernel)) == ["data", "kernel"]
    pointwise = nn.conv2d(data, te.placeholder((4, 8, 1, 1)))
    assert axes(pointwise) == (["n", "co", "h", "w"], ["rc"])
    depthwise = nn.conv2d(data, te.placeholder((8, 1, 3, 3)), groups=8)
    assert axes(depthwise) == (["n", "co", "h", "w"], ["rh", "rw"])
    channels_last = nn.conv2d(te.placeholder((1, 6, 6, 8)), te.placeholder((3, 3, 8, 4)), data_layout="NHWC")
    assert axes(channels_last) == (["n", "h", "w", "co"], ["rh", "rw", "rc"])
    scaling = nn.conv2d(data, te.placeholder((8, 1, 1, 1)), groups=8)
    assert scaling.compute is not None and not isinstance(scaling.compute.body, Reduce)


DATA, KERNEL = te.placeholder((1, 8, 6, 6), name="D"), te.placeholder((4, 8, 3, 3), name="K")


@pytest.mark.parametrize(("declare", "sentence"), [
    (lambda: nn.conv2d(te.placeholder((8, 6, 6), name="D"), KERNEL),
     "asked for conv2d of data D with shape (8, 6, 6), which has 3 dimensions; layout NCHW needs 4"),
    (lambda: nn.conv2d(DATA, te.placeholder((4, 8, 3), name="K")),
     "asked for conv2d of kernel K with shape (4, 8, 3), which has 3 dimensions; layout OIHW needs 4"),
    (lambda: nn.conv2d(DATA, te.placeholder((4, 3, 3, 3), name="K")),
     "conv2d of D with 8 channels in 1 group and kernel K of shape (4, 3, 3, 3), which takes 3 input channels per group; it has to take 8"),
    (lambda: nn.conv2d(DATA, KERNEL, groups=3), "conv2d of D with groups=3, 8 input channels and 4 output channels; groups has to divide both"),
    (lambda: nn.conv2d(DATA, KERNEL, groups=0), "with groups=0"),
    (lambda: nn.conv2d(DATA, te.placeholder((4, 8, 3, 9), name="K")),
     "with a kernel of 9 in dimension W (spanning 9 with dilation 1), where the data has 6 plus padding 0 + 0"),
    (lambda: nn.conv2d(DATA, KERNEL, dilation=4), "with a kernel of 3 in dimension H (spanning 9 with dilation 4)"),
    (lambda: nn.conv2d(DATA, te.placeholder((4, 8, 3, 3), "int8", name="K")), "conv2d of float32 tensor D and int8 tensor K; give out_dtype="),
    (lambda: nn.conv2d(DATA, KERNEL, data_layout="NCXY"),
     "asked for conv2d with data_layout 'NCXY'; it has to arrange the letters N, C, H, W, each once, such as NCHW"),
    (lambda: nn.conv2d(DATA, KERNEL, kernel_layout="OIH"), "asked for conv2d with kernel_layout 'OIH'; it has to arrange the letters O, I, H, W"),
    (lambda: nn.conv2d(DATA, KERNEL, strides=0), "asked for conv2d with strides 0; give an integer of at least 1, or 2 of them"),
    (lambda: nn.conv2d(DATA, KERNEL, strides=(1, 1, 1)), "asked for conv2d with strides (1, 1, 1)"),
    (lambda: nn.conv2d(DATA, KERNEL, padding=-1), "asked for conv2d with padding -1; give an integer of at least 0"),
    (lambda: nn.conv2d(DATA, KERNEL, padding=(1, 2, 3)), "one for each of the 2 spatial dimensions, or 4: all befores, then all afters"),
    (lambda: nn.conv2d(DATA, KERNEL, padding="same"), "asked for conv2d with padding 'same'; the known words are 'VALID' and 'SAME'"),
    (lambda: nn.depthwise_conv2d_nchw(DATA, KERNEL),
     "depthwise_conv2d of D with 8 channels and kernel K of shape (4, 8, 3, 3), which has 4 in dimension 0"),
])
def test_mistakes_give_a_sentence(declare: Callable[[], Tensor], sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert sentence in str(caught.value)
