"""Converts the kernels of a network to JSON and back: C texts, whose libraries are those of `ansor.measure.kept_kernels`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ansor.codegen.building import Toolchain
from ansor.codegen.source import Argument, CSource
from ansor.measure.kept_kernels import known_kernel
from ansor.measure.kernel import Kernel
from ansor.networks.network_kernel import NetworkKernel
from ansor.targets.base import Target

if TYPE_CHECKING:
    from ansor.graph.kernels import GroupKernel
    from ansor.graph.tasks import ExtractedGraph

KernelData = dict[str, object]  # JSON


def kernel_data(kernel: GroupKernel) -> KernelData | None:
    """A kernel without its library; None for PyTorch's."""
    if not isinstance(kernel, NetworkKernel):
        return None
    own, code = kernel.kernel, kernel.kernel.code
    return {
        "text": code.text, "entry": code.entry, "arguments": [one.to_data() for one in code.arguments], "workspace": code.workspace_bytes,
        "threads": code.threads, "tolerance": code.tolerance, "name": own.name, "schedule": own.schedule, "origin": own.origin,
        "mcpu": own.mcpu, "ranges": own.ranges,
    }  # fmt: skip


def kernels_of(data: Sequence[Mapping[str, Any] | None], extracted: ExtractedGraph, target: Target) -> list[GroupKernel] | None:
    """The kernels of a network's tasks; None if a library is no longer kept, or PyTorch has no kernel for a task that it has to run.

    If the data are not of the form that `kernel_data` makes, reading them may raise various errors.
    """
    from ansor.graph.library import library_kernels

    others = library_kernels(extracted) if None in data else [None] * len(extracted.tasks)
    toolchain = target.toolchain() if any(one is not None for one in data) else None
    found: list[GroupKernel] = []
    for one, other in zip(data, others, strict=True):
        kernel = other if one is None or toolchain is None else _kernel_of(one, toolchain)
        if kernel is None:
            return None
        found.append(kernel)
    return found


def _kernel_of(data: Mapping[str, Any], toolchain: Toolchain) -> NetworkKernel | None:
    arguments = tuple(map(Argument.from_data, data["arguments"]))
    source = CSource(data["text"], data["entry"], arguments, data["workspace"], data["threads"], data["tolerance"])
    library = known_kernel(source, toolchain)
    if library is None:
        return None
    kernel = Kernel(source, library, schedule=data["schedule"])
    kernel.name, kernel.origin, kernel.mcpu = data["name"], data["origin"], data["mcpu"]
    kernel.ranges = tuple((name, low, high) for name, low, high in data["ranges"])
    return NetworkKernel(kernel)
