"""ONNX's Resize: by PyTorch's own function if that supports the mode, otherwise one dimension after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
import torch.nn.functional as f
from numpy.typing import NDArray

from ansor.onnx.call import Call, computes

Places = NDArray[np.float64]

PLACES: Mapping[str, Callable[[Places, float, int, int], Places]] = {
    "half_pixel": lambda at, factor, old, new: (at + 0.5) / factor - 0.5,
    "half_pixel_symmetric": lambda at, factor, old, new: (at + 0.5) / factor - 0.5 + old / 2 * (1 - new / (factor * old)),
    "pytorch_half_pixel": lambda at, factor, old, new: (at + 0.5) / factor - 0.5 if new > 1 else at * 0.0,
    "asymmetric": lambda at, factor, old, new: at / factor,
    "align_corners": lambda at, factor, old, new: at * ((old - 1) / (factor * old - 1)) if new > 1 else at * 0.0,
}
"""The position of a result's element in the operand, from the scale and both extents."""

ROUNDED: Mapping[str, Callable[[Places], Places]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5), "round_prefer_ceil": lambda at: np.floor(at + 0.5), "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip


@computes("Resize")
def resize(call: Call) -> torch.Tensor:
    x, how, places = call.tensor(), call.text("mode", "nearest"), call.text("coordinate_transformation_mode", "half_pixel")
    call.word("nearest_mode", *ROUNDED)
    sizes, factors = _resized(call, x)
    if call.integer("antialias", 0) or call.integer("exclude_outside", 0) or call.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise call.refused("antialias, exclude_outside or a policy for the aspect ratio")
    if how != "nearest" and not x.dtype.is_floating_point:
        raise call.refused(f"the mode {how} on integers")
    by_torch = _by_torch(call, x, sizes, factors)
    if by_torch is not None:
        return by_torch
    if how not in ("nearest", "linear") or places not in PLACES:
        raise call.refused(f"the mode {how} with {places}")
    for axis, (size, factor) in enumerate(zip(sizes, factors, strict=True)):
        if size != x.shape[axis] or factor != 1.0:
            at = PLACES[places](np.arange(size, dtype=np.float64), factor, x.shape[axis], size)
            x = _nearest(x, axis, ROUNDED[call.text("nearest_mode", "round_prefer_floor")](at)) if how == "nearest" else _between(x, axis, at)
    return x


def _by_torch(call: Call, x: torch.Tensor, sizes: list[int], factors: list[float]) -> torch.Tensor | None:
    """Resize by one call of PyTorch; None if PyTorch does not support the mode."""
    how, places, rounding = (call.text(name, default) for name, default in
                             (("mode", "nearest"), ("coordinate_transformation_mode", "half_pixel"), ("nearest_mode", "round_prefer_floor")))
    given = [size / extent for size, extent in zip(sizes, x.shape, strict=True)]
    if sizes[:2] != list(x.shape[:2]) or x.dim() not in (3, 4, 5) or any(abs(one - other) > 1e-6 for one, other in zip(given, factors, strict=True)):
        return None
    if how == "nearest":
        by_whole = (places, rounding) == ("half_pixel", "round_prefer_floor") and all(one == int(one) for one in given)
        return f.interpolate(x, size=sizes[2:], mode="nearest") if by_whole or (places, rounding) == ("asymmetric", "floor") else None
    if how == "cubic" and (x.dim() != 4 or call.number("cubic_coeff_a", -0.75) != -0.75):
        return None
    mode = "bicubic" if how == "cubic" else {3: "linear", 4: "bilinear", 5: "trilinear"}[x.dim()]
    if places == "half_pixel" or (places == "pytorch_half_pixel" and min(sizes[2:]) > 1):
        return f.interpolate(x, size=sizes[2:], mode=mode, align_corners=False)
    return f.interpolate(x, size=sizes[2:], mode=mode, align_corners=True) if places == "align_corners" else None


def _nearest(x: torch.Tensor, axis: int, at: Places) -> torch.Tensor:
    return x.index_select(axis, torch.from_numpy(np.clip(at, 0, x.shape[axis] - 1).astype(np.int64)))


def _between(x: torch.Tensor, axis: int, at: Places) -> torch.Tensor:
    """Interpolate between the two nearest elements; the edge elements extend outwards."""
    low = np.floor(at)
    share = torch.from_numpy((at - low).astype(np.float32)).to(x.dtype).reshape([-1 if one == axis else 1 for one in range(x.dim())])
    return _nearest(x, axis, low) * (1.0 - share) + _nearest(x, axis, low + 1) * share


def _resized(call: Call, x: torch.Tensor) -> tuple[list[int], list[float]]:
    axes = call.listed("axes", range(x.dim()))
    sizes, factors = list(x.shape), [1.0] * x.dim()
    if call.has(3):
        for axis, size in zip(axes, call.array(3).tolist(), strict=True):
            sizes[axis], factors[axis] = int(size), size / x.shape[axis]
    else:
        for axis, factor in zip(axes, call.array(2).tolist(), strict=True):
            sizes[axis], factors[axis] = int(x.shape[axis] * factor), factor
    return sizes, factors
