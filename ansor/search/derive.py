"""From a declaration to the spaces that are searched: sketches by rules, then loop orders, locations and annotations."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.rules.base import SketchRule
from ansor.rules.registry import resolve
from ansor.schedule.annotate import annotated
from ansor.schedule.locations import location_variants
from ansor.schedule.loop_orders import loop_orders
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target

MAX_SKETCHES = 4096
MAX_VISITS = 64  # per stage: rules that need more revisit without end


def derive_sketches(dag: Dag, rules: Sequence[str | SketchRule], target: Target) -> list[Sketch]:
    """Every sketch the rules (names or values) reach. Stages are visited consumers first; fewer applications come first, then the order of the rules.

    Raises ScheduleError when the rules reach none, or do not come to an end.
    """
    start, known = Sketch(dag), resolve(rules)
    frontier = [(start, tuple(stage.name for stage in start.state.stages))]
    finished: list[Sketch] = []
    visits = 0
    while frontier:
        visits += 1
        reached: list[tuple[Sketch, tuple[str, ...]]] = []
        for sketch, pending in frontier:
            if pending:
                reached += _visited(sketch, pending, known, target)
            else:
                finished.append(sketch)
        frontier = reached
        if len(frontier) + len(finished) > MAX_SKETCHES or visits > MAX_VISITS * len(dag.stages):
            raise ScheduleError(f"the rules reached {len(frontier) + len(finished)} sketches in {visits} rounds; make some exclusive, or revisit fewer stages")
    if not finished:
        raise ScheduleError(f"no rule takes a stage of the workload ({', '.join(stage.name for stage in start.state.stages)}); add skip_stage to the rules")
    return finished


def _visited(sketch: Sketch, pending: tuple[str, ...], rules: Sequence[SketchRule], target: Target) -> list[tuple[Sketch, tuple[str, ...]]]:
    """What the rules make of the last pending stage, with the stages then pending."""
    *rest, stage = pending
    reached = []
    for rule in rules:
        derived = list(rule.derive(sketch, stage, target))
        reached += [(one.sketch, (*(rest if one.pending is None else one.pending), *one.revisit)) for one in derived]
        if derived and (rule.exclusive or any(one.exclusive for one in derived)):
            break
    return reached


def spaces(dag: Dag, target: Target, rules: Sequence[str | SketchRule] | None = None) -> list[Sketch]:
    """Everything that is searched: each sketch, with each loop order and each location variant, its annotations open.

    `rules` are names or values, those of the target by default.
    """
    sketches = derive_sketches(dag, target.rules if rules is None else rules, target)
    placed = [variant for sketch in sketches for ordered in loop_orders(sketch, target) for variant in location_variants(ordered)]
    found = {sketch.name: sketch for sketch in (annotated(variant, target) for variant in placed)}
    return list(found.values())
