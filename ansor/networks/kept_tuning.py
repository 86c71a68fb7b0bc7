"""A kept network in the process that tunes it. It is read without its weights, whose values do not affect times, and kept again with faster kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ansor.networks.kept_networks import MOST_BYTES, PART, constant_of, network_of
from ansor.networks.kernel_list import kernel_data
from ansor.support import kept_data
from ansor.support.bfloat16 import dtype_named
from ansor.targets.base import Target

if TYPE_CHECKING:
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.tasks import ExtractedGraph

TUNED = "tuned"
"""The key, in the data kept with a network, that marks it as tuned for the whole requested time."""


@dataclass(frozen=True)
class Unweighted:
    """A kept network, with ones in place of its weights."""

    name: str
    data: Mapping[str, Any]
    rest: bytes
    extracted: ExtractedGraph

    def network(self, target: Target) -> CompiledNetwork | None:
        """The network as it is kept; None if a library of its kernels is no longer kept."""
        return network_of(self.data["network"], self.extracted.graph.constants, target)

    def keep(self, network: CompiledNetwork) -> Unweighted:
        """Keep it under the same name with the kernels of `network`."""
        return self._keep({**self.data, "network": {**self.data["network"], "kernels": [kernel_data(kernel) for kernel in network.kernels]}})

    def finish(self) -> Unweighted:
        """Keep it under the same name as one that needs no more tuning."""
        return self._keep({**self.data, "about": {**self.data["about"], TUNED: True}})

    def _keep(self, data: Mapping[str, Any]) -> Unweighted:
        kept_data.write(PART, self.name, json.dumps(data).encode() + b"\n" + self.rest, MOST_BYTES)
        return replace(self, data=data)


def unweighted(name: str) -> Unweighted | None:
    """The network kept under that name; None if there is none, or PyTorch runs it."""
    from ansor.graph.graph_data import of_data
    from ansor.graph.tasks import declaration

    content = kept_data.read(PART, name)
    if content is None:
        return None
    head, _, rest = content.partition(b"\n")
    data = json.loads(head)
    if not data["network"]:
        return None
    placed = data["network"]["constants"]
    constants = {key: np.ones(one["shape"], dtype_named(one["dtype"])) if "weight" in one else constant_of(one, rest, ()) for key, one in placed.items()}
    read = of_data(data["network"]["graph"], constants)
    groups = {placed.task: placed.group for placed in reversed(read.placed)}
    tasks = tuple(replace(task, declare=partial(declaration, read.graph, groups[number])) for number, task in enumerate(read.tasks))
    return Unweighted(name, data, rest, replace(read, tasks=tasks))
