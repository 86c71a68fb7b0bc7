"""Whether a module's weights are still those that its network was compiled with: the network has copies of its own, and would compute with the old ones.

Changes through `.data` leave no trace in PyTorch's version counters, so a few elements of each weight are compared. That takes microseconds for each weight,
and is done again only after a thousand times as long: it costs 0.1 % of the time at most.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

SHARE = 0.001
"""Of a network's time, for looking."""
SAMPLES = 8
"""Elements of each weight that are compared, spread over it."""


@dataclass(frozen=True)
class _Weight:
    """Some elements of a weight, as bytes: NaNs are equal to themselves."""

    shape: torch.Size
    places: torch.Tensor
    elements: torch.Tensor


class WatchedWeights:
    """Remembers a module's weights by name, and does not keep the module alive."""

    def __init__(self, module: torch.nn.Module, names: Iterable[str]) -> None:
        self._module = weakref.ref(module)
        self._weights: Mapping[str, _Weight] = {}
        self._next = 0.0
        self._kind = type(module).__name__
        held = _held(module)
        self._weights = {name: _seen(held[name]) for name in names if name in held and _is_plain(held[name])}

    def change(self) -> str | None:
        """One sentence if a weight was found changed, at most once; None otherwise, and while it is too early to look again."""
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
            f"{changed} of {self._kind} has changed since the network was compiled, which still computes with the weights it had then; "
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
    """Parameters and buffers by name; those with several names under each."""
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.numel() > 0 and not tensor.is_meta and not tensor.is_quantized


def _seen(tensor: torch.Tensor) -> _Weight:
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randint(tensor.numel(), (min(SAMPLES, tensor.numel()),), generator=generator)
    return _Weight(tensor.shape, chosen, _elements(tensor, chosen))


def _elements(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return torch.take(tensor.detach(), places.to(tensor.device)).cpu().view(torch.uint8)
