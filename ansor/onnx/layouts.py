"""ONNX's operators that move elements: reshape, slice, concatenate, pad, gather."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as f

from ansor.onnx.call import Call, computes
from ansor.onnx.model_file import Array


@computes("Shape")
def shape(call: Call) -> Array:
    extents = call.tensor().shape
    return np.array(extents[call.integer("start", 0) : call.node.attributes.get("end")], dtype=np.int64)


@computes("Size")
def size(call: Call) -> Array:
    return np.array(call.tensor().numel(), dtype=np.int64)


@computes("Reshape")
def reshape(call: Call) -> torch.Tensor:
    x, wanted = call.tensor(), call.integers(1) or []
    if not call.integer("allowzero", 0):
        wanted = [x.shape[axis] if extent == 0 else extent for axis, extent in enumerate(wanted)]
    return x.reshape(wanted)


@computes("Flatten")
def flatten(call: Call) -> torch.Tensor:
    x, axis = call.tensor(), call.integer("axis", 1)
    axis = axis if axis == x.dim() else call.within(axis, x.dim())
    return x.reshape(int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))


@computes("Squeeze")
def squeeze(call: Call) -> torch.Tensor:
    x, axes = call.tensor(), call.integers(1, "axes")
    if axes is None:
        return x.squeeze()
    if any(x.shape[call.within(axis, x.dim())] != 1 for axis in axes):
        raise call.refused(f"axes={axes} for the shape {list(x.shape)}, where extents are not 1")
    return x.squeeze(tuple(axes))


@computes("Unsqueeze")
def unsqueeze(call: Call) -> torch.Tensor:
    x, axes = call.tensor(), call.integers(1, "axes") or []
    rank = x.dim() + len(axes)
    places = sorted({call.within(axis, rank) for axis in axes})
    if len(places) < len(axes):
        raise call.refused(f"axes={axes}, two of which are the same")
    for axis in places:
        x = x.unsqueeze(axis)
    return x


@computes("Transpose")
def transpose(call: Call) -> torch.Tensor:
    x = call.tensor()
    return x.permute(call.listed("perm", range(x.dim() - 1, -1, -1)))


@computes("Concat")
def concat(call: Call) -> torch.Tensor:
    return torch.cat(call.tensors(), call.integer("axis", 0))


@computes("Split")
def split(call: Call) -> tuple[torch.Tensor, ...]:
    x, axis, sizes, parts = call.tensor(), call.integer("axis", 0), call.integers(1, "split"), len(call.node.outputs)
    if sizes is None:
        whole = -(-x.shape[axis] // parts)
        sizes = [min(whole, x.shape[axis] - whole * place) for place in range(parts)]
    return tuple(torch.split(x, sizes, axis))


@computes("Slice")
def slice_(call: Call) -> torch.Tensor:
    x, starts, ends = call.tensor(), call.integers(1) or [], call.integers(2) or []
    axes = call.integers(3) or list(range(len(starts)))
    steps = call.integers(4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        taken = range(x.shape[axis])[start:end:step] if step > 0 else range(x.shape[axis])[start : end if end >= -x.shape[axis] else None : step]
        if step > 0:
            places: list[slice] = [slice(None)] * x.dim()
            places[axis] = slice(taken.start, taken.stop, step)
            x = x[tuple(places)]
        else:
            x = x.index_select(axis % x.dim(), torch.tensor(list(taken), dtype=torch.int64))
    return x


@computes("Gather")
def gather(call: Call) -> torch.Tensor:
    x, axis = call.tensor(), call.integer("axis", 0)
    axis %= max(x.dim(), 1)
    known = call.operands[1]
    if isinstance(known, np.ndarray) and known.ndim == 0:
        return x.select(axis, int(known))
    places = call.tensor(1).long()
    if axis == 0 and x.dim() == 2 and not isinstance(known, np.ndarray) and x.dtype.is_floating_point and isinstance(call.operands[0], torch.Tensor):
        places = torch.where(places < 0, places + x.shape[0], places)
        return f.embedding(places, x)
    whole: list[slice | torch.Tensor] = [slice(None)] * axis
    return x[(*whole, places)]


@computes("GatherElements")
def gather_elements(call: Call) -> torch.Tensor:
    x, axis, places = call.tensor(), call.integer("axis", 0), call.tensor(1).long()
    return torch.gather(x, axis, torch.where(places < 0, places + x.shape[axis], places))


@computes("GatherND")
def gather_nd(call: Call) -> torch.Tensor:
    x, places, batch = call.tensor(), call.tensor(1).long(), call.integer("batch_dims", 0)
    depth = places.shape[-1]
    lead = [torch.arange(x.shape[axis]).reshape([-1 if one == axis else 1 for one in range(places.dim() - 1)]) for axis in range(batch)]
    return x[(*lead, *(places[..., axis] for axis in range(depth)))]


@computes("ScatterElements")
def scatter_elements(call: Call) -> torch.Tensor:
    x, axis, how = call.tensor(), call.integer("axis", 0), call.word("reduction", "none", "add", "mul", "max", "min")
    places = call.tensor(1).long()
    places = torch.where(places < 0, places + x.shape[axis], places)
    if how == "none":
        return torch.scatter(x, axis, places, call.tensor(2))
    return torch.scatter_reduce(x, axis, places, call.tensor(2), {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[how])


@computes("ScatterND")
def scatter_nd(call: Call) -> torch.Tensor:
    x, places, how = call.tensor(), call.tensor(1).long(), call.text("reduction", "none")
    if how not in ("none", "add"):
        raise call.refused(f"reduction={how}")
    return x.index_put(tuple(places[..., axis] for axis in range(places.shape[-1])), call.tensor(2), accumulate=how == "add")


@computes("Expand")
def expand(call: Call) -> torch.Tensor:
    x = call.tensor()
    return x.expand(np.broadcast_shapes(tuple(x.shape), tuple(call.integers(1) or ())))


@computes("Tile")
def tile(call: Call) -> torch.Tensor:
    return call.tensor().repeat(call.integers(1) or [])


@computes("Pad")
def pad(call: Call) -> torch.Tensor:
    x, pads, mode = call.tensor(), call.integers(1, "pads") or [], call.text("mode", "constant")
    axes = call.integers(3) or list(range(x.dim()))
    before, after = [0] * x.dim(), [0] * x.dim()
    for place, axis in enumerate(axes):
        before[axis], after[axis] = pads[place], pads[place + len(axes)]
    if mode == "constant":
        value = call.array(2).reshape(-1)[0].item() if call.has(2) else 0
        return torch.constant_pad_nd(x, [one for axis in reversed(range(x.dim())) for one in (before[axis], after[axis])], value)
    how = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}.get(mode)
    if how is None or min((*before, *after)) < 0:
        raise call.refused(f"mode={mode} with the padding {pads}")
    for axis in range(x.dim()):
        if before[axis] or after[axis]:
            order = np.pad(np.arange(x.shape[axis]), (before[axis], after[axis]), mode=how)  # type: ignore[call-overload]  # one of three words
            x = x.index_select(axis, torch.from_numpy(order))
    return x


@computes("DepthToSpace")
def depth_to_space(call: Call) -> torch.Tensor:
    x, block = call.tensor(), call.integer("blocksize", 1)
    if call.word("mode", "DCR", "CRD") == "CRD":
        return f.pixel_shuffle(x, block)
    images, channels, height, width = x.shape
    apart = x.reshape(images, block, block, channels // block**2, height, width)
    return apart.permute(0, 3, 4, 1, 5, 2).reshape(images, channels // block**2, height * block, width * block)


@computes("SpaceToDepth")
def space_to_depth(call: Call) -> torch.Tensor:
    x, block = call.tensor(), call.integer("blocksize", 1)
    if call.word("mode", "DCR", "CRD") == "CRD":
        return f.pixel_unshuffle(x, block)
    images, channels, height, width = x.shape
    apart = x.reshape(images, channels, height // block, block, width // block, block)
    return apart.permute(0, 3, 5, 1, 2, 4).reshape(images, channels * block**2, height // block, width // block)


@computes("OneHot")
def one_hot(call: Call) -> torch.Tensor:
    places, depth, values, axis = call.tensor(0), int(call.array(1).reshape(-1)[0]), call.tensor(2), call.integer("axis", -1)
    places = torch.where(places < 0, places + depth, places)
    axis = axis + places.dim() + 1 if axis < 0 else axis
    steps = torch.arange(depth, dtype=places.dtype).reshape([-1 if one == axis else 1 for one in range(places.dim() + 1)])
    return torch.where(places.unsqueeze(axis) == steps, values[1], values[0])


@computes("Trilu")
def triangle(call: Call) -> torch.Tensor:
    x, offset = call.tensor(), int(call.array(1).item()) if call.has(1) else 0
    return x.triu(offset) if call.integer("upper", 1) else x.tril(offset)


@computes("EyeLike")
def eye(call: Call) -> torch.Tensor:
    from ansor.onnx.elementwise import DTYPES

    x, offset, wanted = call.tensor(), call.integer("k", 0), call.integer("dtype", 0)
    if wanted and wanted not in DTYPES:
        raise call.refused(f"ONNX's dtype {wanted}")
    wide = torch.arange(x.shape[1]) - torch.arange(x.shape[0])[:, None] == offset
    return wide.to(DTYPES.get(wanted, x.dtype))


@computes("TopK")
def topk(call: Call) -> tuple[torch.Tensor, ...]:
    """Prefers the first of equal elements; PyTorch's own topk does not define which."""
    axis, count = call.integer("axis", -1), int(call.array(1).reshape(-1)[0])
    values, places = torch.sort(call.tensor(), dim=axis, descending=bool(call.integer("largest", 1)), stable=True)
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


@computes("ReverseSequence")
def reverse_sequence(call: Call) -> torch.Tensor:
    x, lengths, batch, time = call.tensor(0), call.tensor(1), call.integer("batch_axis", 1), call.integer("time_axis", 0)
    places, lengths = torch.arange(x.shape[time]).reshape(_along(time, x.dim())), lengths.reshape(_along(batch, x.dim()))
    return torch.gather(x, time, torch.where(places < lengths, lengths - 1 - places, places).expand(x.shape))


def _along(axis: int, rank: int) -> Sequence[int]:
    return [-1 if one == axis else 1 for one in range(rank)]
