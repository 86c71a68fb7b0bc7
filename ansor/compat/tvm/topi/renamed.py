"""One of our operators with TVM's arguments."""

from __future__ import annotations

from ast import literal_eval
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import BoundArguments, Parameter, Signature, signature
from typing import Any, cast

from ansor.te import nn
from ansor.te.nn.layout import Padding, Sizes, paddings, sizes, spatial_of
from ansor.te.tensor import Tensor

Operator = Callable[..., Any]


@dataclass(frozen=True)
class Renamed:
    """Our operator `ours` with TVM's arguments. given: values of our arguments that TVM's name implies.

    takes: `name` or `name=default` in TVM's order; by default our own arguments. Each stands for our argument of that name, or else for the one at that
    position; `name:ours` stands for our argument `ours`, and `name:` is ignored.
    """

    ours: str
    takes: str | None = None
    given: Mapping[str, object] = field(default_factory=dict)

    @property
    def operator(self) -> Operator:
        """The operator with TVM's signature. The name of the result is an optional keyword."""
        function: Operator = getattr(nn, self.ours)
        own = signature(function)
        parameters = [one for one in own.parameters.values() if one.name != "name"]
        meant = {one.name: one.name for one in parameters}
        if self.takes is not None:
            parameters, meant = _parsed(self.takes, list(own.parameters))
        takes = Signature(parameters)

        @wraps(function)
        def applied(*args: object, **kwargs: object) -> Any:
            name = "" if "name" in takes.parameters else kwargs.pop("name", "")
            bound = takes.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = {meant[given]: value for given, value in bound.arguments.items() if given in meant}
            if self.takes is not None:
                arguments |= _translated(arguments)
            whole = BoundArguments(own, OrderedDict({**arguments, **self.given, **({"name": name} if name else {})}))
            return function(*whole.args, **whole.kwargs)

        vars(applied)["__signature__"] = takes
        return applied


def _parsed(takes: str, own: list[str]) -> tuple[list[Parameter], dict[str, str]]:
    """TVM's parameters, and our name for each that is not ignored."""
    parameters, meant = list[Parameter](), dict[str, str]()
    for place, word in enumerate(takes.split()):
        told, _, default = word.partition("=")
        name, colon, ours = told.partition(":")
        parameters.append(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=literal_eval(default) if default else Parameter.empty))
        if ours or not colon:
            meant[name] = ours or (name if name in own else own[place])
    return parameters, meant


def _translated(arguments: Mapping[str, object]) -> dict[str, object]:
    """Values with another meaning in TVM: without `out_dtype`, the result has the dtype of the data; for `ceil_mode`, see `_sides`."""
    found: dict[str, object] = {}
    if "out_dtype" in arguments and arguments["out_dtype"] is None:
        found["out_dtype"] = cast(Tensor, arguments["data"]).dtype
    if arguments.get("ceil_mode"):
        sides = _sides(cast("Padding", arguments["padding"]), cast("Sizes", arguments["stride"]), cast(str, arguments["layout"]))
        found.update(padding=sides, ceil_mode=False)
    return found


def _sides(padding: Padding, stride: Sizes, layout: str) -> Padding:
    """The padding of each side for `ceil_mode`: more at the end, so that the last window is complete.

    As in TVM, but unlike PyTorch and `nn`, this includes windows that start in the padding after the data.
    """
    count = len(spatial_of("pooling", "layout", layout))
    pairs = paddings("pooling", padding, (1,) * count)
    steps = sizes("pooling", "stride", stride, count)
    return [before for before, _ in pairs] + [after + step - 1 for (_, after), step in zip(pairs, steps, strict=True)]
