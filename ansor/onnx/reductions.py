"""ONNX's reductions, softmax and norms."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as f

from ansor.onnx.call import Call, Translation, computes

Reduce = Callable[[torch.Tensor, list[int], bool], torch.Tensor]


def _product(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = torch.prod(x, axis, keep, dtype=x.dtype)
    return x


def _extreme(function: Callable[..., torch.Tensor]) -> Reduce:
    def reduce(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        return function(x.to(torch.uint8), axes, keep).bool() if x.dtype is torch.bool else function(x, axes, keep)

    return reduce


REDUCE: dict[str, Reduce] = {
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keep, dtype=x.dtype),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keep),
    "ReduceMax": _extreme(torch.amax),
    "ReduceMin": _extreme(torch.amin),
    "ReduceProd": _product,
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keep, dtype=x.dtype),
    "ReduceL2": lambda x, axes, keep: (x * x).sum(axes, keep, dtype=x.dtype).sqrt().to(x.dtype),
    "ReduceLogSum": lambda x, axes, keep: x.sum(axes, keep).log().to(x.dtype),
    "ReduceLogSumExp": lambda x, axes, keep: torch.logsumexp(x, axes, keep).to(x.dtype),
    "ReduceSumSquare": lambda x, axes, keep: (x * x).sum(axes, keep, dtype=x.dtype),
}


def _reduction(function: Reduce) -> Translation:
    def translation(call: Call) -> torch.Tensor:
        x, axes = call.tensor(), call.integers(1, "axes")
        if not axes:
            if call.integer("noop_with_empty_axes", 0):
                return function(x[..., None], [-1], False)  # reduces each element by itself
            axes = list(range(x.dim()))
        return function(x, axes, bool(call.integer("keepdims", 1))) if axes else function(x[None], [0], False)

    return translation


for _name, _function in REDUCE.items():
    computes(_name)(_reduction(_function))


@computes("ArgMax", "ArgMin")
def place_of_extreme(call: Call) -> torch.Tensor:
    x, axis, keep = call.tensor(), call.integer("axis", 0), bool(call.integer("keepdims", 1))
    function = torch.argmax if call.node.op == "ArgMax" else torch.argmin
    if call.integer("select_last_index", 0):
        return x.shape[axis] - 1 - function(x.flip(axis), axis, keep)
    return function(x, axis, keep)


@computes("Softmax", "LogSoftmax")
def softmax(call: Call) -> torch.Tensor:
    return (f.softmax if call.node.op == "Softmax" else f.log_softmax)(call.tensor(), call.integer("axis", -1))


@computes("Hardmax")
def hardmax(call: Call) -> torch.Tensor:
    x, axis = call.tensor(), call.integer("axis", -1)
    shape = [1] * x.dim()
    shape[axis] = -1
    places = torch.arange(x.shape[axis]).reshape(shape)
    return (places == torch.argmax(x, axis, keepdim=True)).to(x.dtype)


@computes("CumSum")
def running_sum(call: Call) -> torch.Tensor:
    x, axis = call.tensor(), int(call.array(1).item())
    turned = bool(call.integer("reverse", 0))
    x = x.flip(axis) if turned else x
    if call.integer("exclusive", 0):  # not by subtraction, which would cancel small elements next to large ones
        x = torch.cat([torch.zeros_like(x.narrow(axis, 0, 1)), x.narrow(axis, 0, x.shape[axis] - 1)], axis) if x.shape[axis] else x
    made = x.cumsum(axis, dtype=x.dtype)
    return made.flip(axis) if turned else made


@computes("LayerNormalization")
def layer_norm(call: Call) -> torch.Tensor | tuple[torch.Tensor, ...]:
    x = call.tensor()
    axes = list(range(call.axis(-1, x.dim()), x.dim()))
    parameters = [call.tensor(place).shape for place in (1, 2) if call.has(place)]
    if len(call.node.outputs) == 1 and all(one == x.shape[axes[0] :] for one in parameters):
        return f.layer_norm(x, x.shape[axes[0] :], call.tensor(1), call.optional(2), call.number("epsilon", 1e-5))
    mean = x.mean(axes, True)
    apart = x - mean
    inverse = torch.rsqrt((apart * apart).mean(axes, True) + call.number("epsilon", 1e-5))
    made = apart * inverse * call.tensor(1)
    made = made + call.tensor(2) if call.has(2) else made
    return (made, mean, inverse)[: len(call.node.outputs)] if len(call.node.outputs) > 1 else made


@computes("RMSNormalization")
def rms_norm(call: Call) -> torch.Tensor:
    x = call.tensor()
    axes = list(range(call.axis(-1, x.dim()), x.dim()))
    return x * torch.rsqrt((x * x).mean(axes, True) + call.number("epsilon", 1e-5)) * call.tensor(1)


@computes("BatchNormalization")
def batch_norm(call: Call) -> torch.Tensor:
    if call.integer("training_mode", 0) or len([name for name in call.node.outputs if name]) > 1:
        raise call.refused("training_mode=1")
    x, scale, shift, mean, variance = (call.tensor(place) for place in range(5))
    return f.batch_norm(x, mean, variance, scale, shift, False, 0.0, call.number("epsilon", 1e-5))


@computes("InstanceNormalization")
def instance_norm(call: Call) -> torch.Tensor:
    return f.group_norm(call.tensor(0), call.tensor(0).shape[1], call.tensor(1), call.tensor(2), call.number("epsilon", 1e-5))


@computes("GroupNormalization")
def group_norm(call: Call) -> torch.Tensor:
    x, groups = call.tensor(0), call.integer("num_groups", 1)
    scale, shift = call.tensor(1), call.tensor(2)
    if scale.shape[0] != x.shape[1]:  # in version 18, one scale per group
        scale, shift = (one.repeat_interleave(x.shape[1] // groups) for one in (scale, shift))
    return f.group_norm(x, groups, scale, shift, call.number("epsilon", 1e-5))


@computes("LRN")
def local_response_norm(call: Call) -> torch.Tensor:
    x, size = call.tensor(), call.integer("size", 1)
    before, after = (size - 1) // 2, size // 2
    squares = f.pad(x * x, (*(0, 0) * (x.dim() - 2), before, after))
    total = squares[:, : x.shape[1]]
    for place in range(1, size):
        total = total + squares[:, place : place + x.shape[1]]
    return x / (call.number("bias", 1.0) + call.number("alpha", 1e-4) / size * total) ** call.number("beta", 0.75)


@computes("LpNormalization")
def lp_norm(call: Call) -> torch.Tensor:
    x, axis, p = call.tensor(), call.integer("axis", -1), call.integer("p", 2)
    length = x.abs().sum(axis, True) if p == 1 else (x * x).sum(axis, True).sqrt()
    return torch.where(length == 0, torch.zeros_like(x), x / torch.where(length == 0, 1.0, length))


@computes("MeanVarianceNormalization")
def mean_variance_norm(call: Call) -> torch.Tensor:
    x, axes = call.tensor(), call.listed("axes", (0, 2, 3))
    apart = x - x.mean(axes, True)
    return apart / ((apart * apart).mean(axes, True).sqrt() + 1e-9)
