"""Transposed convolutions against PyTorch."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.dag import Dag
from ansor.te import nn
from ansor.te.tensor import Tensor

Floats = NDArray[np.float32]


@pytest.mark.torch
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("kernel", "stride", "padding", "output_padding"), [
    (3, 1, 0, 0), (3, 1, 1, 0), (4, 1, 3, 0), (4, 2, 1, 0), (3, 2, 1, 1), (2, 2, 0, 0), (1, 2, 0, 1), (5, 3, 2, 1), (3, 3, 1, 2), (6, 3, 4, 0), (7, 2, 5, 0),
])
def test_conv2d_transpose(run: Callable[..., Floats], array: Callable[..., Floats], kernel: int, stride: int, padding: int, output_padding: int,
                          groups: int) -> None:
    import torch
    import torch.nn.functional as functional

    data, weight = array(2, 4, 6, 7), array(4, 6 // groups, kernel, 2)
    want: Floats = functional.conv_transpose2d(
        torch.from_numpy(data), torch.from_numpy(weight), None, (stride, 1), (padding, 0), (output_padding, 0), groups).numpy()
    arguments = ((stride, 1), (padding, 0), None, (output_padding, 0), groups)
    got = run(lambda d, k: nn.conv2d_transpose(d, k, *arguments), data, weight)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    data, weight = np.ascontiguousarray(data.transpose(0, 2, 3, 1)), np.ascontiguousarray(weight.transpose(2, 3, 0, 1))
    got = run(lambda d, k: nn.conv2d_transpose(d, k, *arguments, data_layout="NHWC"), data, weight)
    np.testing.assert_allclose(got, want.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks(run: Callable[..., Floats], array: Callable[..., Floats], rank: int) -> None:
    import torch
    import torch.nn.functional as functional

    data, weight = array(1, 3, *(4, 3, 5)[:rank]), array(3, 2, *(4, 3, 3)[:rank])
    oracle = functional.conv_transpose1d if rank == 1 else functional.conv_transpose3d
    declare = nn.conv1d_transpose if rank == 1 else nn.conv3d_transpose
    want: Floats = oracle(torch.from_numpy(data), torch.from_numpy(weight), None, 2, 1).numpy()
    np.testing.assert_allclose(run(lambda d, k: declare(d, k, 2, 1), data, weight), want, rtol=1e-4, atol=1e-5)


def test_no_multiplication_by_inserted_zeros() -> None:
    data, kernel = te.placeholder((1, 4, 4, 8), name="data"), te.placeholder((4, 4, 8, 16), name="kernel")
    dag = Dag([data, kernel, nn.conv2d_transpose(data, kernel, 2, 1, data_layout="NHWC")])
    assert dag.flop == 2 * (8 * 8 * 16) * (2 * 2 * 8)  # 2 x 2 of the 4 x 4 taps meet data at each place
    assert [stage.name for stage in dag.stages] == ["data", "kernel", "pad", "conv2d_transpose_phases", "conv2d_transpose"]


DATA, KERNEL = te.placeholder((1, 8, 6, 6), name="D"), te.placeholder((8, 4, 3, 3), name="K")


@pytest.mark.parametrize(("declare", "sentence"), [
    (lambda: nn.conv2d_transpose(DATA, te.placeholder((4, 8, 3, 3), name="K")),
     "of D with 8 channels and kernel K of shape (4, 8, 3, 3), which takes 4"),
    (lambda: nn.conv2d_transpose(DATA, KERNEL, 2, 1, None, 2), "with output_padding 2 in dimension H, where the stride is 2; it has to be less"),
    (lambda: nn.conv2d_transpose(DATA, KERNEL, 1, 4),
     "extent 6 in dimension H, kernel 3, stride 1 and padding 4 + 4, which leaves 0 elements; pad less"),
    (lambda: nn.conv2d_transpose(DATA, KERNEL, groups=3), "with groups=3 and 8 channels; groups has to divide the channels"),
    (lambda: nn.conv2d_transpose(DATA, KERNEL, data_layout="CHW"), "asked for conv2d_transpose with data_layout 'CHW'"),
])
def test_mistakes_give_a_sentence(declare: Callable[[], Tensor], sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert sentence in str(caught.value)
