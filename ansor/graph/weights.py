"""Checks whether a module's weights are still those that its network was compiled with: the network has its own copies, and computes with the old values.

Changes through `.data` leave no trace in PyTorch's version counters, so a few elements of each weight are compared. A check takes microseconds per weight.
The next one waits a thousand times as long as the check took, so checks take at most 0.1 % of the time.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

SHARE = 0.001
"""The fraction of the time that checks may take."""
SAMPLES = 8
"""How many elements of each weight are compared, spread over it."""


@dataclass(frozen=True)
class _Weight:
    """Some elements of a weight, as bytes, so that NaNs are equal to themselves."""

    shape: torch.Size
    places: torch.Tensor
    elements: torch.Tensor


class WatchedWeights:
    """Remembers a module's weights by name, without keeping the module alive."""

    def __init__(self, module: torch.nn.Module, names: Iterable[str]) -> None:
        self._module = weakref.ref(module)
        self._weights: Mapping[str, _Weight] = {}
        self._next = 0.0
        self._kind = type(module).__name__
        held = _held(module)
        self._weights = {name: _seen(held[name]) for name in names if name in held and _is_plain(held[name])}

    def change(self) -> str | None:
        """One sentence if a weight has changed, at most once; None otherwise, and while it is too early for the next check."""
        start = time.monotonic()
        if start < self._next:
            return None
        module = self._module()
        changed = self._changed(module) if module is not None else None
        if module is None or changed is not None:
            self._next = float("inf")
        else:
            self._next = start + (time.monotonic() - start) / SHARE
        if changed is None:
            return None
        return (
            f"{changed} of {self._kind} has changed since the network was compiled, but the network still computes with the old weights; "
            "compile the model again to use the new ones"
        )

    def _changed(self, module: torch.nn.Module) -> str | None:
        held = _held(module)
        for name, weight in self._weights.items():
            now = held.get(name)
            if now is None or not _is_plain(now) or now.shape != weight.shape or not torch.equal(_elements(now, weight.places), weight.elements):
                return name
        return None


def _held(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name; those with several names under each of them."""
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.numel() > 0 and not tensor.is_meta and not tensor.is_quantized


def _seen(tensor: torch.Tensor) -> _Weight:
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randint(tensor.numel(), (min(SAMPLES, tensor.numel()),), generator=generator)
    return _Weight(tensor.shape, chosen, _elements(tensor, chosen))


def _elements(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return torch.take(tensor.detach(), places.to(tensor.device)).cpu().view(torch.uint8)


class WeightState:
    """A snapshot of some tensors: the address of each, how often it was written to, and a few of its elements. Comparing takes tens of microseconds.

    PyTorch does not count writes through `.data` and NumPy, nor any in inference mode: such a write is noticed only if it changes one of these elements.
    """

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        self._versions = _versions(weights)
        self._views: dict[torch.dtype, list[torch.Tensor]] = {}
        for weight in weights:
            if _has_bits(weight):
                self._views.setdefault(_BITS[weight.element_size()], []).append(_spread(weight))
        self._elements = self._now()

    def is_of(self, weights: Sequence[torch.Tensor]) -> bool:
        """Whether these tensors, given in the same order, are still what they were."""
        return _versions(weights) == self._versions and all(map(torch.equal, self._now(), self._elements))

    def _now(self) -> list[torch.Tensor]:
        return [torch.cat(views) for views in self._views.values()]


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers by the bytes of an element: bits are compared, so that NaNs are equal to themselves."""


def _versions(weights: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
    return [(0 if one.is_inference() else one._version, one.data_ptr() if one.layout is torch.strided else 0) for one in weights]


def _has_bits(tensor: torch.Tensor) -> bool:
    return _is_plain(tensor) and tensor.element_size() in _BITS and not tensor.is_conj() and not tensor.is_neg()


def _spread(weight: torch.Tensor) -> torch.Tensor:
    """A view of some elements of a weight's memory."""
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(weight.shape, weight.stride(), strict=True))
    places = min(SAMPLES, span)
    return weight.detach().as_strided((places,), (span // places,)).view(_BITS[weight.element_size()])
