from __future__ import annotations

import pytest
import torch
from torch import nn

from ansor.codegen.source import Argument, CSource, Pack
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract
from ansor.measure.kernel import build_kernels
from ansor.networks.network_kernel import NetworkKernel

pytestmark = [pytest.mark.torch, pytest.mark.compiler]

DENSE = """
void dense(void *const *args, unsigned char *workspace, void *parallel_for, void *pool) {
    const float *x = args[0], *w = args[1], *b = args[2];  /* w is stored [in][out] */
    float *y = args[3], *sum = (float *)workspace;
    for (int j = 0; j < 2; ++j) sum[j] = b[j];
    for (int k = 0; k < 3; ++k) for (int j = 0; j < 2; ++j) sum[j] += x[k] * w[k * 2 + j];
    for (int j = 0; j < 2; ++j) y[j] = sum[j];
}
"""


def test_built_kernels_get_packed_constants_and_a_workspace() -> None:
    model = nn.Linear(3, 2).eval()
    extracted = extract(model, torch.zeros(1, 3))
    data, weight, bias, result = extracted.tasks[0].tensors
    arguments = (
        Argument("data", data.shape, "float32", "input"),
        Argument("weight", weight.shape, "float32", "constant", Pack((3, 2), ((0, 1), (1, 0)))),
        Argument("bias", bias.shape, "float32", "constant"),
        Argument("result", result.shape, "float32", "output"),
    )
    (kernel,) = build_kernels([CSource(DENSE, "dense", arguments, 64)])
    network = CompiledNetwork(extracted, [NetworkKernel(kernel)])
    for _ in range(3):
        given = torch.randn(1, 3)
        torch.testing.assert_close(network(given), model(given).detach())
