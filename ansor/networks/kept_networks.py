"""Keeps compiled networks in the cache folder: the graph, the C texts, and the constants that do not equal a weight.

A network's key covers everything that it depends on, including the values of its weights, so weights need not be kept: a constant that equals a weight,
transposed or not, is read from it again. Libraries are those of `ansor.measure.kept_kernels`. A network that cannot be restored is compiled again.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansor.errors import AnsorError
from ansor.networks.kernel_list import kernel_data, kernels_of
from ansor.networks.saving import NetworkWriter
from ansor.networks.step_run import joined
from ansor.run.machine_model import identity
from ansor.run.scoring_model import model_mark
from ansor.support import kept_data
from ansor.support.bfloat16 import dtype_named
from ansor.support.package_state import package_state
from ansor.targets.base import Target, parse_target

if TYPE_CHECKING:
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.shared_constants import SharedConstants
    from ansor.graph.tasks import ExtractedGraph

PART = "networks"
MOST_BYTES = 2 << 30
"""The most bytes that all kept networks may take."""
SMALL = 4096
"""Constants of fewer bytes are kept without comparing them with the weights."""
Array = NDArray[np.generic]


@dataclass(frozen=True)
class KeptNetwork:
    """A kept network; None if PyTorch has to run it. `about`: what else the caller stored with it, as JSON."""

    network: CompiledNetwork | None
    about: Any


def name_of(target: str, words: Sequence[object]) -> str:
    """The key of a network without measurements: `words`, and everything else that it depends on."""
    parsed = parse_target(target)
    scorer = model_mark(parsed, parsed.unit.name)
    return kept_data.name_of((sorted(identity(parsed).items()), scorer, package_state(), tuple(words)))


def found(name: str, target: str, weights: Sequence[Array | None], shared: SharedConstants | None = None) -> KeptNetwork | None:
    """The network kept under that name. weights: the weights of the model, None for those that NumPy cannot hold; shared: as in `ExtractedGraph`."""
    content = kept_data.read(PART, name)
    if content is None:
        return None
    end = content.find(b"\n")
    rest = memoryview(content)[end + 1 :]  # not a copy: it may be hundreds of megabytes
    try:
        data = json.loads(content[:end])
        network = None
        if data["network"]:
            constants = {key: constant_of(one, rest, weights) for key, one in data["network"]["constants"].items()}
            network = network_of(data["network"], constants, parse_target(target), shared)
        return KeptNetwork(network, data["about"]) if network or not data["network"] else None
    except (AnsorError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, OSError):  # not a form that we write
        return None


def keep(
    name: str, about: object, weights: Sequence[Array | None], extracted: ExtractedGraph | None, network: CompiledNetwork | None, target: str
) -> None:
    """Keep a network for this target, unless a part of it has no form in JSON."""
    from ansor.graph.attention_blocks import divided
    from ansor.graph.graph_data import to_data

    if not kept_data.ENABLED:
        return
    data, chunks = None, list[bytes]()
    try:
        if network is not None and extracted is not None:
            stretch = network.stretch
            extracted = divided(extracted, stretch, parse_target(target).threads)
            placed, chunks = _placed_constants(extracted.graph.constants, weights)
            kernels = [kernel_data(kernel) for kernel in network.kernels]
            data = {"graph": to_data(extracted), "constants": placed, "kernels": kernels, "stretch": None if stretch is None else astuple(stretch)}
        head = json.dumps({"about": about, "network": data}).encode()
    except TypeError:
        return
    kept_data.write(PART, name, b"".join([head, b"\n", *chunks]), MOST_BYTES)


def network_of(data: Mapping[str, Any], constants: Mapping[str, Array], target: Target, shared: SharedConstants | None = None) -> CompiledNetwork | None:
    """The network that is kept as `data`; None if a library is no longer kept."""
    from ansor.graph.graph_data import of_data
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.row_parts import Stretch

    extracted = replace(of_data(data["graph"], constants), shared=shared)
    kernels = kernels_of(data["kernels"], extracted, target)
    if kernels is None:
        return None
    network = CompiledNetwork(extracted, kernels)
    network.run_by(joined)
    network.writer = NetworkWriter(target)
    network.stretch = Stretch(*data["stretch"]) if data["stretch"] else None
    if shared is not None:
        shared.add(network.constants)
    return network


def _placed_constants(constants: Mapping[str, Array], weights: Sequence[Array | None]) -> tuple[dict[str, object], list[bytes]]:
    """Where each constant is found, in a weight or in the bytes after the JSON, and these bytes."""
    by_size: dict[int, list[tuple[int, Array]]] = {}
    for number, weight in enumerate(weights):
        if weight is not None:
            by_size.setdefault(weight.nbytes, []).append((number, weight))
    placed: dict[str, object] = {}
    chunks: list[bytes] = []
    size = 0
    for name, constant in constants.items():
        near = by_size.get(constant.nbytes, []) if constant.nbytes >= SMALL else []
        same = next((one for number, weight in near if (one := _as_weight(constant, number, weight)) is not None), None)
        if same is None:
            chunks.append(constant.tobytes())
            same = {"at": size}
            size += constant.nbytes
        placed[name] = {**same, "shape": constant.shape, "dtype": str(constant.dtype)}
    return placed, chunks


def _as_weight(constant: Array, number: int, weight: Array) -> dict[str, object] | None:
    """The order of a weight's dimensions, ignoring those of one element, in which it equals the constant bit for bit; None if there is none."""
    if constant.dtype != weight.dtype:
        return None
    wanted, plain = constant.squeeze(), weight.squeeze()
    if sorted(wanted.shape) != sorted(plain.shape):
        return None
    for order in itertools.permutations(range(plain.ndim)):
        turned = plain.transpose(order)
        if turned.shape == wanted.shape and _equal_bits(turned, wanted):
            return {"weight": number, "order": order}
    return None


def _equal_bits(one: Array, other: Array) -> bool:
    bits = np.dtype(f"u{one.itemsize}")
    sample = tuple(slice(None, None, max(1, extent // 4)) for extent in one.shape)
    return all(np.array_equal(np.array(one[part]).view(bits), np.array(other[part]).view(bits)) for part in (sample, ...))


def constant_of(data: Mapping[str, Any], rest: bytes | memoryview, weights: Sequence[Array | None]) -> Array:
    """A constant, from a weight or from the kept bytes."""
    shape = tuple(data["shape"])
    if "weight" not in data:
        found: Array = np.ndarray(shape, dtype_named(data["dtype"]), rest, data["at"])
        return found
    weight = weights[data["weight"]]
    if weight is None:
        raise ValueError(f"a constant is read from weight {data['weight']}, which NumPy cannot hold")
    turned: Array = weight.squeeze().transpose(data["order"]).reshape(shape)
    return turned
