"""The reference's workloads: stages, arguments and values."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.errors import DeclarationError
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te import workloads
from ansor.te.tensor import Tensor


def depth_first(tensors: list[Tensor]) -> list[str]:
    """Stage names in the order of the reference: producers before consumers, in reading order, from the outputs."""
    from ansor.ir.access import producers

    seen: list[str] = []

    def visit(tensor: Tensor) -> None:
        for producer in producers(tensor):
            visit(producer)
        if tensor.name not in seen:
            seen.append(tensor.name)

    for tensor in tensors:
        if not tensor.is_placeholder:
            visit(tensor)
    return seen


@pytest.mark.parametrize(("tensors", "stages"), [
    (workloads.matmul(512, 512, 512), ["A", "B", "C"]),
    (workloads.double_matmul(512), ["A", "B", "D", "C", "E"]),
    (workloads.conv2d_nchw_bn_relu(1, 56, 56, 512, 512, 3, 1, 1),
     ["Data", "pad", "Kernel", "conv", "Bias", "Bias_add", "Bn_scale", "Bn_mul", "Bn_offset", "Bn_add", "relu"]),
    (workloads.max_pool2d(1, 56, 56, 512, 1), ["Data", "pad", "pool"]),
    (workloads.min_nm(10, 1024), ["A", "B"]),
    (workloads.softmax_nm(1, 1024), ["A", "max", "exp", "expsum", "norm"]),
    (workloads.softmax_abcd(1, 12, 128, 128), ["A", "max", "exp", "expsum", "norm"]),
    (workloads.conv2d_winograd_nhwc(1, 28, 28, 128, 128, 3, 1, 1),
     ["inputs", "data_pad", "input_tile", "B", "data_pack", "weight", "bgemm", "A", "inverse", "conv2d_winograd"]),
    (workloads.zero_rank_reduce(128), ["A", "B"]),
])
def test_stages(tensors: list[Tensor], stages: list[str]) -> None:
    assert depth_first(tensors) == stages
    assert Dag(tensors).tensors[-1].shape == tensors[-1].shape


def test_arguments_of_the_convolution_come_in_the_order_of_the_reference() -> None:
    names = [tensor.name for tensor in workloads.conv2d_nchw_bn_relu(1, 8, 8, 4, 4, 3, 1, 1)]
    assert names == ["Data", "Kernel", "Bias", "Bn_offset", "Bn_scale", "relu"]


def test_winograd_marks_the_stages_to_unroll() -> None:
    key = "auto_scheduler_simplify_const_tensor_indices"
    marked = {stage.name: stage.attrs[key] for stage in Dag(workloads.conv2d_winograd_nhwc(1, 8, 8, 4, 4, 3, 1, 1)).stages if key in stage.attrs}
    assert marked == {"data_pack": ["eps", "nu", "r_a", "r_b"], "inverse": ["vh", "vw", "r_a", "r_b"]}


@pytest.mark.parametrize(("size", "padding"), [(8, 1), (7, 0), (5, 2)])
@pytest.mark.parametrize("precompute", [False, True])
def test_winograd_is_a_convolution(size: int, padding: int, precompute: bool) -> None:
    generator = np.random.default_rng(3)
    data = generator.standard_normal((2, size, size, 3))
    kernel = generator.standard_normal((3, 3, 3, 4))
    transform = np.array(workloads.WINOGRAD_G)
    weight = kernel if precompute else np.einsum("ax,xyio,by->abio", transform, kernel, transform)
    tensors = workloads.conv2d_winograd_nhwc(2, size, size, 3, 4, 3, 1, padding, precompute=precompute)
    (got,) = evaluate(tensors[-1:], {"inputs": data, "weight": weight}, dtype="float64")
    (want,) = evaluate(workloads.conv2d(2, size, size, 3, 4, 3, 1, padding)[-1:], {"data": data, "kernel": kernel}, dtype="float64")
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


def test_winograd_of_other_kernels_is_refused() -> None:
    with pytest.raises(DeclarationError, match="asked for conv2d_winograd_nhwc with kernel_size 5, stride 1 and dilation 1; it supports only 3, 1 and 1"):
        workloads.conv2d_winograd_nhwc(1, 8, 8, 4, 4, 5)


def test_values() -> None:
    generator = np.random.default_rng(5)

    def value(tensors: list[Tensor]) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
        given = {tensor.name: generator.standard_normal(tensor.shape) for tensor in tensors[:-1]}
        return list(given.values()), evaluate(tensors[-1:], given, dtype="float64")[0]

    (a, b), got = value(workloads.matmul(3, 4, 5))
    np.testing.assert_allclose(got, a @ b)
    (a, b, c), got = value(workloads.double_matmul(4))
    np.testing.assert_allclose(got, a @ b @ c)
    (a,), got = value(workloads.min_nm(3, 4))
    np.testing.assert_allclose(got, a.min(1))
    (a,), got = value(workloads.softmax_nm(3, 4))
    np.testing.assert_allclose(got, np.exp(a) / np.exp(a).sum(1, keepdims=True))
    (a,), got = value(workloads.zero_rank_reduce(9))
    np.testing.assert_allclose(got, a.sum())
    (a,), got = value(workloads.norm(2, 3, 4))
    np.testing.assert_allclose(got, np.linalg.norm(a.reshape(2, -1), axis=1))


@pytest.mark.parametrize("name", workloads.PAPER_OPERATORS)
def test_operators_of_the_paper_are_declared(name: str) -> None:
    declare, arguments = workloads.PAPER_OPERATORS[name]
    dag = Dag(declare(*arguments))
    assert len(dag.outputs) == 1 and dag.flop > 0
