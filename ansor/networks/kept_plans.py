"""Plans of networks in the cache folder: the kernels that an earlier process chose for a network without measuring, and the groups that run in PyTorch.

A plan depends on the graph, the shapes of its constants, the target and this package, but not on the values of the constants. So it also applies to a model
with other weights: the network is assembled from the plan and the weights of the model at hand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ansor.errors import AnsorError
from ansor.networks.kernel_list import kernel_data, kernels_of
from ansor.run.kept_picks import told
from ansor.run.keywords import RunOptions
from ansor.run.reporter import Reporter
from ansor.run.scoring_model import model_mark
from ansor.support import kept_data
from ansor.support.package_state import package_state
from ansor.targets.base import Target
from ansor.tasks.own_parts import is_target_ours

if TYPE_CHECKING:
    from ansor.graph.kernels import GroupKernel
    from ansor.graph.tasks import ExtractedGraph

PART = "plans"
MOST_BYTES = 256 << 20

Line = tuple[Literal["say", "alarm"], str]


@dataclass(frozen=True)
class RecordingReporter(Reporter):
    """Remembers its lines, and how each was reported."""

    lines: list[Line] = field(default_factory=list)

    def say(self, line: str) -> None:
        """See `Reporter.say`."""
        self.lines.append(("say", line))
        super().say(line)

    def alarm(self, line: str) -> None:
        """See `Reporter.alarm`."""
        self.lines.append(("alarm", line))
        super().alarm(line)


def name_of(extracted: ExtractedGraph, target: Target, asked: RunOptions, library: bool) -> str:
    """The name of a network's plan; empty if none is kept because programs are measured or recorded, or depend on something that text cannot identify."""
    if asked.measures or asked.records is not None:
        return ""
    words = words_of(extracted, target, asked)
    return "" if words is None else kept_data.name_of((*words, asked.given, library))


def words_of(extracted: ExtractedGraph, target: Target, asked: RunOptions) -> tuple[object, ...] | None:
    """What the model's picks for a network depend on; None if they are not kept, or depend on something that text cannot identify."""
    from ansor.graph.graph_data import steps_data
    from ansor.graph.traced import state_text

    model = asked.search.model
    if not kept_data.ENABLED or not is_target_ours(target) or not (model is None or isinstance(model, str)):
        return None
    try:
        graph = json.dumps(steps_data(extracted))
    except TypeError:
        return None
    constants = [(name, one.shape, str(one.dtype)) for name, one in extracted.graph.constants.items()]
    state = state_text()
    if state is None:
        return None
    runs = state, target.toolchain().version
    return graph, constants, told(target), runs, model_mark(target, target.unit.name, model), asked.search.seed, package_state()


def found(name: str, extracted: ExtractedGraph, target: Target, reporter: Reporter) -> list[GroupKernel] | None:
    """The kernels of the plan of that name; reports again what was reported when they were chosen. None if there is no plan, or it no longer works."""
    content = kept_data.read(PART, name)
    if content is None:
        return None
    try:
        data = json.loads(content)
        kernels = kernels_of(data["kernels"], extracted, target)
        lines = [(how, str(line)) for how, line in data["lines"]]
    except (AnsorError, LookupError, ValueError, TypeError, AttributeError, OSError):  # not a form that we write
        return None
    if kernels is None:
        return None
    for how, line in lines:
        (reporter.alarm if how == "alarm" else reporter.say)(line)
    return kernels


def keep(name: str, kernels: Sequence[GroupKernel], lines: Sequence[Line]) -> None:
    """Keep a plan."""
    data = {"kernels": list(map(kernel_data, kernels)), "lines": lines}
    kept_data.write(PART, name, json.dumps(data).encode(), MOST_BYTES)
