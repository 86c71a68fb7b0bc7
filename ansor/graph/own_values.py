"""Plain values of a model, such as a count of its calls. An exported program has those of one call: a model that changes them computes something else later."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from ansor.support.text import listed

PLAIN = (bool, int, float, str)

Values = Mapping[str, bool | int | float | str]


@contextmanager
def changes_noted(module: torch.nn.Module) -> Iterator[list[str]]:
    """What each call inside the block changed, in words, "" for nothing. It is looked at within the call, because torch.export puts old values back."""
    noted: list[str] = []
    if isinstance(module, torch.jit.ScriptModule):  # which cannot be exported
        yield noted
        return
    own, forward = vars(module).get("forward"), module.forward

    @functools.wraps(forward)
    def watched(*args: object, **kwargs: object) -> object:
        before = own_values(module)
        result = forward(*args, **kwargs)
        noted.append(changes(before, own_values(module)))
        return result

    module.forward = watched
    try:
        yield noted
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def own_values(module: torch.nn.Module) -> Values:
    """The public plain attributes of a module and its parts, by path. Whether a part is in training mode is not among them."""
    return {
        f"{path}.{name}".lstrip("."): value
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, PLAIN) and not name.startswith("_") and name != "training"
    }


def changes(before: Values, after: Values) -> str:
    """The values that a call changed, in words; "" if none. Values that came with the call, as caches do, are not meant."""
    kept = {name: value for name, value in before.items() if name in after and value == value}  # NaN differs from itself
    return listed([f"{name} (from {value!r:.40} to {after[name]!r:.40})" for name, value in kept.items() if after[name] != value])
