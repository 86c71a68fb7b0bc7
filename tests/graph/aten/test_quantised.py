"""Graphs with the operators that PT2E puts in: dense layers sum products of bytes, and everything else is as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators
from torch import nn

from ansor.api import compile as compiled
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch
Reference = Callable[[ExtractedGraph], CompiledNetwork]
OPS: Any = torch.ops.quantized_decomposed
LIMITS = {torch.uint8: (0, 255), torch.int8: (-128, 127)}


class Dense(nn.Module):
    """A dense layer as PT2E writes it, its result quantised, too. zero: of the weights."""

    def __init__(self, inner: int = 24, out: int = 16, dtype: torch.dtype = torch.uint8, zero: int = 0, bias: bool = True) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (out, inner), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(out) * 0.01 + 0.001)
        self.register_buffer("zeros", torch.full((out,), zero))
        self.bias = nn.Parameter(torch.randn(out)) if bias else None
        self.dtype, self.zero_point = dtype, 7

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low, high = LIMITS[self.dtype]
        given = (0.05, self.zero_point, low, high, self.dtype)
        read = OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, *given), *given)
        weight = OPS.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -128, 127, torch.int8)
        made = nn.functional.gelu(nn.functional.linear(read, weight, self.bias))
        result: torch.Tensor = OPS.quantize_per_tensor(made, 0.02, 3, low, high, self.dtype)
        return result


def expected(layer: Dense, x: torch.Tensor) -> np.ndarray[Any, Any]:
    """Its result with the sums in integers of 64 bits, and floats behind them."""
    low, high = LIMITS[layer.dtype]
    q = OPS.quantize_per_tensor(x, 0.05, layer.zero_point, low, high, layer.dtype).long() - layer.zero_point
    sums = (q.reshape(-1, q.shape[-1]) @ layer.weight.long().T).float()  # type: ignore[operator]  # a buffer
    real = sums * (np.float32(0.05) * layer.scales)  # type: ignore[operator]  # likewise
    real = real if layer.bias is None else real + layer.bias
    made: np.ndarray[Any, Any] = OPS.quantize_per_tensor(nn.functional.gelu(real), 0.02, 3, low, high, layer.dtype).numpy()
    return made.reshape(*x.shape[:-1], -1)


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("bias", [True, False])
def test_a_dense_layer_sums_products_of_bytes(reference: Reference, dtype: torch.dtype, bias: bool) -> None:
    layer, x = Dense(dtype=dtype, bias=bias), torch.randn(2, 5, 24) * 4
    extracted = extract(layer, (x,))
    names = [task.name for task in extracted.tasks]
    assert names == ["quantise_2x5x24", f"integer_dense_10x24x16{'_bias' if bias else ''}_gelu_quantise"] and not extracted.torch_calls
    found = reference(extracted)(x)
    assert isinstance(found, torch.Tensor) and found.dtype is dtype
    wrong = np.abs(found.numpy().astype(int) - expected(layer, x).astype(int))
    assert wrong.max() <= 1 and (wrong > 0).mean() < 0.02  # the last bit of a gelu may be another


def test_layers_with_other_scales_are_one_task() -> None:
    first, second = Dense(), Dense()
    second.zero_point = 9

    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return first(x), second(x)

    assert [task.weight for task in extract(model, (torch.randn(4, 24),)).tasks] == [2, 2]


@pytest.mark.parametrize(("inner", "zero"), [(24, 1), (80000, 0)], ids=["weights that are not around 0", "sums beyond 32 bits"])
def test_what_bytes_cannot_do_is_computed_in_floats(reference: Reference, inner: int, zero: int) -> None:
    layer, x = Dense(inner, 4, zero=zero), torch.randn(3, inner)
    extracted = extract(layer, (x,))
    assert not extracted.torch_calls and any(task.name.startswith(f"dense_3x{inner}x4") for task in extracted.tasks)
    found = reference(extracted)(x)
    assert isinstance(found, torch.Tensor) and (found.int() - layer(x).int()).abs().max() <= 1


@pytest.mark.parametrize("dtype", LIMITS)
def test_numbers_are_quantised_and_read_as_by_pytorch(reference: Reference, dtype: torch.dtype) -> None:
    low, high = LIMITS[dtype]
    given = (0.25, 5, low + 2, high - 3, dtype)

    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q = OPS.quantize_per_tensor(x, *given)
        return q, OPS.dequantize_per_tensor(q, *given)

    x = torch.cat([torch.arange(-400, 400) / 8.0, torch.randn(200) * 30])  # halves of a step, and beyond both ends
    extracted = extract(model, (x,))
    assert not extracted.torch_calls
    for one, other in zip(reference(extracted)(x), model(x), strict=True):  # type: ignore[call-overload]  # a tuple, as the model gives one
        assert torch.equal(one, other)


@pytest.mark.compiler
def test_kernels_of_this_machine(reference: Reference) -> None:
    layer, x = Dense(64, 48), torch.randn(6, 64) * 4
    network = compiled(layer, (x,), "cpu -threads=1", library=False, progress=False)
    found, wanted = network(x), reference(extract(layer, (x,)))(x)
    assert isinstance(found, torch.Tensor) and isinstance(wanted, torch.Tensor)
    away = (found.int() - wanted.int()).abs()
    assert away.max() <= 1 and (away > 0).float().mean() < 0.02


class Half(nn.Module):
    """A constant that NumPy cannot hold, of bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (4, 8), dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, OPS.dequantize_per_tensor(self.weight, 0.1, 0, -128, 127, torch.int8, out_dtype=torch.bfloat16))


@pytest.mark.compiler
@pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning")
def test_weights_of_bfloat16_are_read() -> None:
    model, x = Half().eval(), torch.randn(2, 8, dtype=torch.bfloat16)
    found = compiled(model, (x,), progress=False, library=False)(x)
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, model(x))
