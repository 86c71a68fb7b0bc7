"""A convolution is found by its structure, and nothing else is."""

import pytest

from ansor import te
from ansor.algorithms.convolution import find_convolution
from ansor.ir.dag import Dag
from ansor.ir.normal.form import normal_form
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor


def declared(layout: str = "NHWC", strides: int = 1, dilation: int = 1, groups: int = 1, dtype: str = "float32") -> list[Tensor]:
    data = te.placeholder((1, 9, 9, 8) if layout == "NHWC" else (1, 8, 9, 9), dtype, "data")
    kernel = te.placeholder((3, 3, 8 // groups, 16) if layout == "NHWC" else (16, 8 // groups, 3, 3), dtype, "kernel")
    return [data, kernel, nn.conv2d(data, kernel, strides, 1, dilation, groups, layout)]


@pytest.mark.parametrize(("layout", "data_order", "kernel_order"), [("NHWC", (0, 3, 1, 2), (3, 2, 0, 1)), ("NCHW", (0, 1, 2, 3), (0, 1, 2, 3))])
def test_found_in_any_layout(layout: str, data_order: tuple[int, ...], kernel_order: tuple[int, ...]) -> None:
    found = find_convolution(Dag(declared(layout)))
    assert found is not None
    assert (found.data_order, found.kernel_order, found.out_order) == (data_order, kernel_order, data_order)
    assert (found.sizes, found.taps, found.channels, found.groups) == ((1, 16, 9, 9), (3, 3), 8, 1)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_found_in_groups(layout: str) -> None:
    found = find_convolution(Dag(declared(layout, groups=4)))
    assert found is not None and (found.sizes, found.channels, found.outputs, found.groups) == ((1, 16, 9, 9), 2, 4, 4)


@pytest.mark.parametrize(("layout", "order", "kernel_order"), [("NDHWC", (0, 4, 1, 2, 3), (4, 3, 0, 1, 2)), ("NCDHW", (0, 1, 2, 3, 4), (0, 1, 2, 3, 4))])
@pytest.mark.parametrize("taps", [1, 2, 3])
def test_found_in_three_dimensions_if_asked_for(layout: str, order: tuple[int, ...], kernel_order: tuple[int, ...], taps: int) -> None:
    """With one tap, the normal form reads the only element of the kernel in that dimension."""
    last = layout == "NDHWC"
    data = te.placeholder((2, 5, 9, 9, 8) if last else (2, 8, 5, 9, 9), name="data")
    kernel = te.placeholder((taps, 3, 3, 8, 16) if last else (16, 8, taps, 3, 3), name="kernel")
    dag = Dag(normal_form([data, kernel, nn.conv3d(data, kernel, 1, 0, data_layout=layout)]))
    found = find_convolution(dag, dimensions=(2, 3))
    assert found is not None and find_convolution(dag) is None
    assert (found.data_order, found.kernel_order, found.out_order) == (order, kernel_order, order)
    assert (found.sizes, found.taps, found.channels, found.slices) == ((2, 16, 6 - taps, 7, 7), (taps, 3, 3), 8, (2 * (6 - taps), 10))


def by_hand() -> list[Tensor]:
    """The kernel first, taps first, and the batch last."""
    data, kernel = te.placeholder((6, 7, 4, 2), name="data"), te.placeholder((5, 4, 3, 3), name="kernel")
    rh, rw, rc = te.reduce_axis(3, "rh"), te.reduce_axis(3, "rw"), te.reduce_axis(4, "rc")
    return [data, kernel, te.compute((5, 4, 5, 2), lambda w, h, o, n: te.sum(kernel[o, rc, rh, rw] * data[rh + h, w + rw, rc, n], axis=[rc, rh, rw]))]


def test_found_however_it_is_written() -> None:
    found = find_convolution(Dag(by_hand()))
    assert found is not None and found.data_order == (3, 2, 0, 1) and found.out_order == (3, 2, 1, 0) and found.sizes == (2, 5, 4, 5)


def over(taps: int, shift: int = 0, groups: int = 2) -> list[Tensor]:
    """Over some of three taps, 16 outputs in `groups` groups, each of which reads 4 channels, `shift` of them those of the group before."""
    data, kernel = te.placeholder((1, 9, 9, 16), name="data"), te.placeholder((3, 3, 4, 16), name="kernel")
    rh, rw, rc = te.reduce_axis(taps, "rh"), te.reduce_axis(3, "rw"), te.reduce_axis(4, "rc")

    def product(n: te.Expr, h: te.Expr, w: te.Expr, o: te.Expr) -> te.Expr:
        return te.sum(data[n, h + rh, w + rw, o // (16 // groups) * (4 - shift) + rc] * kernel[rh, rw, rc, o], axis=[rh, rw, rc])

    return [data, kernel, te.compute((1, 7, 7, 16), product)]


def test_found_as_groups_are_written_by_hand() -> None:
    found = find_convolution(Dag(over(3)))
    assert found is not None and found.groups == 2


@pytest.mark.parametrize(("taps", "order"), [((3, 3, 1), (0, 4, 3, 1, 2)), ((3, 1, 3), (0, 4, 2, 1, 3))])
def test_depth_is_the_dimension_without_taps(taps: tuple[int, ...], order: tuple[int, ...]) -> None:
    data, kernel = te.placeholder((2, 5, 6, 7, 8), name="data"), te.placeholder((*taps, 8, 16), name="kernel")
    found = find_convolution(Dag(normal_form([data, kernel, nn.conv3d(data, kernel, 1, 0, data_layout="NDHWC")])), dimensions=(3,))
    assert found is not None and (found.data_order, found.out_order, found.taps) == (order, order, (1, 3, 3))


def diagonal(shape: tuple[int, ...], places: str) -> list[Tensor]:
    """A sum that moves along a diagonal of the data or of the kernel. places: the tap of each dimension of the data, then of the kernel (0: its only one)."""
    taps = {letter: te.reduce_axis(3, letter) for letter in "qrs"}
    data_taps, kernel_taps = places.split()
    ndim, used = len(data_taps), [taps[letter] for letter in "qrs" if letter in places]
    rc = te.reduce_axis(4, "rc")
    data = te.placeholder((1, *shape, 4), name="data")
    kernel = te.placeholder((8, 4, *(1 if letter == "0" else 3 for letter in kernel_taps)), name="kernel", constant=True)

    def product(n: te.Expr, *indices: te.Expr) -> te.Expr:
        moved = [index + taps[letter] for index, letter in zip(indices[:ndim], data_taps, strict=True)]
        return te.sum(data[(n, *moved, rc)] * kernel[(indices[-1], rc, *(taps.get(letter, 0) for letter in kernel_taps))], axis=[rc, *used])

    return [data, kernel, te.compute((1, *(extent - 2 for extent in shape), 8), product)]


def kernel_read_twice(constant: bool = True) -> list[Tensor]:
    data, kernel = te.placeholder((1, 9, 9, 8), name="data"), te.placeholder((3, 3, 8, 16), name="kernel", constant=constant)
    product = nn.conv2d(data, kernel, 1, 1, data_layout="NHWC")
    return [data, kernel, te.compute(product.shape, lambda n, h, w, o: product[n, h, w, o] + kernel[0, 0, 0, o])]


def squared() -> list[Tensor]:
    """The same array is the data and the kernel."""
    both = te.placeholder((3, 3, 3, 3), name="both")
    rc, rh, rw = (te.reduce_axis(3, name) for name in ("rc", "rh", "rw"))
    return [both, te.compute((3, 3, 1, 1), lambda n, o, h, w: te.sum(both[n, rc, h + rh, w + rw] * both[o, rc, rh, rw], axis=[rc, rh, rw]))]


def test_a_kernel_that_is_no_constant_may_be_read_elsewhere() -> None:
    assert find_convolution(Dag(kernel_read_twice(constant=False))) is not None


@pytest.mark.parametrize("places", ["rr rr", "rr r0", "rs rr", "rrs rrs", "rrs rs0", "qrr qrr", "rrr rrr", "qrs qqs"])
def test_sums_over_diagonals_are_not(places: str) -> None:
    """They have the same axes as a convolution, some of them twice."""
    tensors = diagonal((7,) * places.index(" "), places)
    assert find_convolution(Dag(tensors), dimensions=(2, 3)) is None
    assert find_convolution(Dag(normal_form(tensors)), dimensions=(2, 3)) is None


@pytest.mark.parametrize(
    "tensors",
    [
        declared(strides=2), declared(dilation=2), declared(dtype="int32"), over(2), over(3, shift=1), over(3, groups=3), declared(groups=8),
        kernel_read_twice(), squared(),
        workloads.matmul(8, 8, 8), workloads.depthwise_conv2d(1, 8, 8, 4, 3), workloads.conv2d_transpose(1, 4, 4, 8, 8, 4, 2, 1),
        workloads.softmax_nm(4, 4),
    ],
)  # fmt: skip
def test_others_are_not(tensors: list[Tensor]) -> None:
    assert find_convolution(Dag(tensors)) is None
