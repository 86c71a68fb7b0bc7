"""Finds the sketch rules that led to a sketch. Sketches keep steps, not rules, so this repeats the derivation and records the rules; it takes milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansor.ir.dag import Dag
from ansor.rules.base import Derived, SketchRule
from ansor.rules.registry import name_of, resolve
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import initial_state
from ansor.schedule.steps import Step
from ansor.search.derive import derive_sketches
from ansor.targets.base import Target


@dataclass(frozen=True)
class Firing:
    """A rule that changed a stage."""

    rule: str
    stage: str


@dataclass(frozen=True)
class _Edge:
    firing: Firing
    before: tuple[Step, ...]
    after: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class RuleTrace:
    """What the rules did for a declaration.

    names: the rules in order; edges: every firing with the steps before and after it; asked: the stages that each rule was tried on, without those that an
    exclusive rule took first.
    """

    names: tuple[str, ...]
    edges: tuple[_Edge, ...]
    asked: frozenset[Firing]

    def fired(self, sketch: Sketch) -> tuple[Firing, ...]:
        """The rules that led to a sketch, in order. Those that add no step are left out."""
        reached = {one.after for one in self.edges if sketch.steps[: len(one.after)] == one.after}
        base = max(reached, key=len, default=())
        on_the_way = [one for one in self.edges if len(one.after) > len(one.before) and base[: len(one.after)] == one.after]
        return tuple(dict.fromkeys(one.firing for one in sorted(on_the_way, key=lambda one: len(one.after))))

    def applied(self, rule: str, stages: Sequence[str]) -> bool:
        """Whether a rule changed one of these stages, in any sketch."""
        return any(one.firing.rule == rule and one.firing.stage in stages for one in self.edges)

    def idle(self, stages: Sequence[str]) -> tuple[str, ...]:
        """The rules that were tried on one of these stages and never changed it."""
        return tuple(name for name in self.names if any(Firing(name, stage) in self.asked for stage in stages) and not self.applied(name, stages))


def rule_trace(dag: Dag, rules: Sequence[str | SketchRule], target: Target) -> RuleTrace:
    """Derive the sketches of a declaration again, recording what each rule does."""
    names = tuple(map(name_of, rules))
    edges: list[_Edge] = []
    asked: set[Firing] = set()
    watched = [_TracedRule(name, rule, edges, asked) for name, rule in zip(names, resolve(rules), strict=True)]
    if watched:
        derive_sketches(dag, watched, target)
    return RuleTrace(names, tuple(edges), frozenset(asked))


def made_of(sketch: Sketch, *kinds: type[Step]) -> dict[str, str]:
    """The stages that steps created (a private tile, partial results, a copy), each with its source. kinds: only by steps of these types; all by default."""
    found: dict[str, str] = {}
    state = initial_state(sketch.dag)
    for step in sketch.steps:
        known, state = state, step.apply(state)
        if not kinds or isinstance(step, kinds):
            found.update((stage.name, step.stage) for stage in state.stages if stage.name not in known)
    return found


@dataclass(frozen=True)
class _TracedRule:
    """A rule that records what it does."""

    name: str
    rule: SketchRule
    edges: list[_Edge]
    asked: set[Firing]

    @property
    def exclusive(self) -> bool:
        return self.rule.exclusive

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        self.asked.add(Firing(self.name, stage))
        for one in self.rule.derive(sketch, stage, target):
            self.edges.append(_Edge(Firing(self.name, stage), sketch.steps, one.sketch.steps))
            yield one
