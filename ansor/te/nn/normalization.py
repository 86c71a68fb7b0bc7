"""Softmax, layer norm, batch norm (inference), L2 normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Expr
from ansor.te.nn.layout import summed, tap_axis
from ansor.te.nn.padding import pad
from ansor.te.nn.reduction import check_float, dimension_of, dimensions_of, over_dimensions
from ansor.te.scalar import exp, if_then_else, log, power, rsqrt, sqrt
from ansor.te.scalar import max as greater
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Tensor, axes_of, declared, elementwise

NEGLIGIBLE = -75.0
"""Inputs of a softmax that are further below the largest have weights of less than 3e-33. Below -87, exponentials are subnormal numbers, with which processors
compute a hundred times as slowly; masks of -100, as in Swin transformers, make many of them. At -75 weights are normal numbers also in rows of 200,000."""


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """exp(x) / sum of exp(x) along `axis`, in four stages: max, exp, expsum, norm (named after `name`, with an underscore)."""
    return softmax_above(None, x, axis, name)


def softmax_above(least: float | None, x: Tensor, axis: int, name: str) -> Tensor:
    """`softmax`, but 0 where x is further below its maximum than `least`, see `NEGLIGIBLE`."""
    check_float(name or "softmax", x)
    chosen = dimension_of(name or "softmax", x, axis)
    greatest = over_dimensions("max", x, chosen, False, _part(name, "max"))
    axes = axes_of(x.shape)
    powers = declared(_part(name, "exp"), axes, _power(x[axes] - greatest[_without(axes, chosen)], least))
    total = over_dimensions("sum", powers, chosen, False, _part(name, "expsum"))
    axes = axes_of(x.shape)
    return declared(_part(name, "norm"), axes, powers[axes] / total[_without(axes, chosen)])


def log_softmax(x: Tensor, axis: int = -1, name: str = "log_softmax") -> Tensor:
    """Logarithm of softmax along `axis`, computed as (x - max) - log(sum of exp(x - max))."""
    return log_softmax_above(None, x, axis, name)


def log_softmax_above(least: float | None, x: Tensor, axis: int, name: str) -> Tensor:
    """`log_softmax`, its sum without terms where x is further below its maximum than `least`, see `NEGLIGIBLE`."""
    check_float(name, x)
    chosen = dimension_of(name, x, axis)
    greatest = over_dimensions("max", x, chosen, False, f"{name}_max")
    axes = tuple(Axis(f"i{d}", extent, "reduce" if d == chosen else "spatial") for d, extent in enumerate(x.shape))
    outer = _without(axes, chosen)
    powers = _power(x[axes] - greatest[outer], least)
    total = declared(f"{name}_expsum", outer, sum_over(powers, axis=axes[chosen]))
    logarithm = elementwise(total, log, f"{name}_logsum")
    axes = axes_of(x.shape)
    outer = _without(axes, chosen)
    return declared(name, axes, (x[axes] - greatest[outer]) - logarithm[outer])


def _power(exponent: Expr, least: float | None) -> Expr:
    if least is None:
        return exp(exponent)
    return if_then_else(exponent < least, 0.0, exp(greater(exponent, least)))  # vectors compute both sides


def layer_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, axis: int | Sequence[int] = -1, epsilon: float = 1e-5,
               name: str = "layer_norm") -> Tensor:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance over the dimensions `axis`.

    gamma and beta have the shape of those dimensions; None omits them. The variance is computed around the mean (in two passes), which stays
    accurate when the mean is large.
    """
    check_float(name, data)
    chosen = dimensions_of(name, data, axis)
    _check_parameters(name, data, chosen, {"gamma": gamma, "beta": beta})
    count = 1.0
    for d in chosen:
        count *= data.shape[d]
    total = over_dimensions("sum", data, chosen, False, f"{name}_sum")
    mean = elementwise(total, lambda value: value / count, f"{name}_mean")
    axes = tuple(Axis(f"i{d}", extent, "reduce" if d in chosen else "spatial") for d, extent in enumerate(data.shape))
    outer = _without(axes, *chosen)
    centred = data[axes] - mean[outer]
    squares = declared(f"{name}_squares", outer, sum_over(centred * centred, axis=[axes[d] for d in chosen]))
    scale = elementwise(squares, lambda value: rsqrt(value / count + epsilon), f"{name}_scale")
    axes = axes_of(data.shape)
    outer, inner = _without(axes, *chosen), tuple(axes[d] for d in chosen)
    value = (data[axes] - mean[outer]) * scale[outer]
    return declared(name, axes, _affine(value, gamma, beta, inner))


def batch_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, moving_mean: Tensor, moving_var: Tensor, axis: int = 1, epsilon: float = 1e-5,
               name: str = "batch_norm") -> Tensor:
    """(data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta along dimension `axis`, with given statistics (inference).

    Three stages: one scale and one shift per channel, then data * scale + shift.
    """
    check_float(name, data)
    chosen = dimension_of(name, data, axis)
    _check_parameters(name, data, (chosen,), {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var})
    channel = Axis("c", data.shape[chosen])
    factor = rsqrt(moving_var[channel] + epsilon)
    scale = declared(f"{name}_scale", (channel,), factor * gamma[channel] if gamma is not None else factor)
    channel = Axis("c", data.shape[chosen])
    product = moving_mean[channel] * scale[channel]
    shift = declared(f"{name}_shift", (channel,), beta[channel] - product if beta is not None else -product)
    axes = axes_of(data.shape)
    return declared(name, axes, data[axes] * scale[axes[chosen]] + shift[axes[chosen]])


def l2_normalize(data: Tensor, axis: int | Sequence[int] = -1, epsilon: float = 1e-12, name: str = "l2_normalize") -> Tensor:
    """data / sqrt(max(sum of squares over the dimensions `axis`, epsilon))."""
    check_float(name, data)
    chosen = dimensions_of(name, data, axis)
    squares = over_dimensions("sum", data, chosen, False, f"{name}_squares", lambda value: value * value)
    length = elementwise(squares, lambda value: sqrt(greater(value, epsilon)), f"{name}_length")
    axes = axes_of(data.shape)
    return declared(name, axes, data[axes] / length[_without(axes, *chosen)])


def lrn(data: Tensor, size: int, axis: int = 1, alpha: float = 1e-4, beta: float = 0.75, bias: float = 2.0, name: str = "lrn") -> Tensor:
    """data / (bias + alpha / size * sum of squares of the `size` elements around it along dimension `axis`) ** beta. `size` is odd."""
    check_float(name, data)
    chosen = dimension_of(name, data, axis)
    if size < 1 or size % 2 == 0:
        raise DeclarationError(f"asked for {name} of {data.name} over {size} elements; it has to be an odd number")
    before = tuple(size // 2 if d == chosen else 0 for d in range(data.ndim))
    padded = pad(data, before, name=f"{name}_pad") if size > 1 else data
    axes, tap = axes_of(data.shape), tap_axis("r", size)
    value = padded[(*axes[:chosen], axes[chosen] + tap, *axes[chosen + 1:])]
    squares = declared(f"{name}_squares", axes, summed(value * value, [tap]))
    axes = axes_of(data.shape)
    return declared(name, axes, data[axes] / power(squares[axes] * (alpha / size) + bias, beta))


def _part(name: str, part: str) -> str:
    return f"{name}_{part}" if name else part


def _without(axes: tuple[Axis, ...], *dropped: int) -> tuple[Axis, ...]:
    return tuple(axis for d, axis in enumerate(axes) if d not in dropped)


def _affine(value: Expr, gamma: Tensor | None, beta: Tensor | None, index: tuple[Axis, ...]) -> Expr:
    if gamma is not None:
        value = value * gamma[index]
    return value if beta is None else value + beta[index]


def _check_parameters(name: str, data: Tensor, chosen: tuple[int, ...], parameters: dict[str, Tensor | None]) -> None:
    shape = tuple(data.shape[d] for d in chosen)
    for role, tensor in parameters.items():
        if tensor is None:
            continue
        if tensor.shape != shape or tensor.dtype != data.dtype:
            raise DeclarationError(
                f"asked for {name} of {data.name} ({data.dtype}, shape {data.shape}) over dimensions {chosen} with {role} {tensor.name} "
                f"({tensor.dtype}, shape {tensor.shape}); {role} has to be {data.dtype} of shape {shape}"
            )
