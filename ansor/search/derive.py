"""From a declaration to the spaces that are searched: sketches by rules, then loop orders, locations and annotations.

The number of sketches multiplies from stage to stage: 5 sketches of a matmul become 15,625 for six in a row. So it is bounded. At the bound, sketches that
treat similar stages alike are kept first, then those that differ in one stage, and so on. What is best for one of several similar stages is usually best for
the others; if it is not, some sketches differ there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.rules.base import Derived, SketchRule
from ansor.rules.registry import resolve
from ansor.schedule.annotate import annotated
from ansor.schedule.locations import location_variants
from ansor.schedule.loop_orders import loop_orders
from ansor.schedule.loop_steps import Split, SplitOuter
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Step
from ansor.support.text import counted, with_article
from ansor.targets.base import Target

MAX_SKETCHES = 256
"""The most sketches kept while rules visit stages, and at the end; fewer if there are many stages, as each stage takes time in each sketch."""

MAX_STAGES = 1024
"""The most stages in all these sketches together."""

LEAST_SKETCHES = 32
"""The least bound on sketches, however many stages there are."""

PLACED = 2.25
"""The most sketches searched, with their loop orders and locations, for each that may be kept."""

MAX_VISITS = 64  # per stage: rules that need more revisit endlessly

_Options = tuple[tuple[int, int], ...]
"""The rules that applied to a stage: the number of each, and how many sketches it derived."""


@dataclass(frozen=True, eq=False)
class _Visit:
    """A sketch with the stages left to visit, the last one first, and for each visited stage the options and the chosen one."""

    sketch: Sketch
    pending: tuple[str, ...]
    done: tuple[tuple[_Options, int], ...] = ()

    @property
    def unlike(self) -> int:
        """The number of stages treated differently from the majority of stages with the same options."""
        most: dict[_Options, int] = {}
        for (options, _), count in Counter(self.done).items():
            most[options] = max(most.get(options, 0), count)
        return len(self.done) - sum(most.values())


def derive_sketches(dag: Dag, rules: Sequence[str | SketchRule], target: Target, used: set[int] | None = None) -> list[Sketch]:
    """The sketches that the rules (names or values) reach, at most `most_sketches`. Stages are visited consumers first. Sketches with fewer applications come
    first, then those of earlier rules; beyond the bound, those that treat stages alike come first. `used` receives the numbers of the rules that applied.

    Raises ScheduleError when the rules reach no sketch or do not terminate, and for steps without their choices.
    """
    start, known, used = Sketch(dag), resolve(rules), set() if used is None else used
    frontier = [_Visit(start, tuple(stage.name for stage in start.state.stages))]
    finished: list[_Visit] = []
    visits = 0
    while frontier:
        visits += 1
        reached: list[_Visit] = []
        for visit in frontier:
            if visit.pending:
                reached += _visited(visit, known, target, used)
            else:
                finished.append(visit)
        frontier = _alike(reached, most_sketches(dag))
        if visits > MAX_VISITS * len(dag.stages):
            raise ScheduleError(f"the rules reached {len(frontier) + len(finished)} sketches in {visits} rounds; make some exclusive, or revisit fewer stages")
    if not finished:
        raise ScheduleError(f"no rule handles a stage of the workload ({', '.join(stage.name for stage in start.state.stages)}); add skip_stage to the rules")
    return _checked([visit.sketch for visit in _alike(finished, most_sketches(dag))])


def most_sketches(dag: Dag) -> int:
    """The most sketches that are kept for a declaration."""
    computed = sum(not stage.is_placeholder for stage in dag.stages)
    return min(MAX_SKETCHES, max(MAX_STAGES // computed, LEAST_SKETCHES))


def _alike(visits: list[_Visit], most: int) -> list[_Visit]:
    """At most `most` visits, preferring those that treat stages alike."""
    return visits if len(visits) <= most else sorted(visits, key=lambda visit: visit.unlike)[:most]


def _visited(visit: _Visit, rules: Sequence[SketchRule], target: Target, used: set[int]) -> list[_Visit]:
    """What the rules derive for the last pending stage."""
    *rest, stage = visit.pending
    reached: list[tuple[Sketch, tuple[str, ...]]] = []
    options: list[tuple[int, int]] = []
    for number, rule in enumerate(rules):
        derived = _derived(rule, visit.sketch, stage, target)
        options += [(number, len(derived))] if derived else []
        reached += [(one.sketch, (*(rest if one.pending is None else one.pending), *one.revisit)) for one in derived]
        if derived and (rule.exclusive or any(one.exclusive for one in derived)):
            break
    used.update(number for number, _ in options)
    if len(reached) == 1:
        return [_Visit(*reached[0], visit.done)]
    return [_Visit(sketch, pending, (*visit.done, (tuple(options), way))) for way, (sketch, pending) in enumerate(reached)]


def _derived(rule: SketchRule, sketch: Sketch, stage: str, target: Target) -> list[Derived]:
    """What a rule derives for a stage. Raises ScheduleError for anything but `Derived`, since users write rules too."""
    found: object = rule.derive(sketch, stage, target)
    derived: list[Derived] = []
    for one in found if isinstance(found, Iterable) else (found,):
        if not isinstance(one, Derived):
            sentence = f"the rule {rule!r:.80} gave {with_article(type(one).__name__)} for stage {stage}"
            raise ScheduleError(f"{sentence}; let it yield Derived(sketch) for each sketch that it makes, and nothing where it does not apply")
        derived.append(one)
    return derived


def _checked(sketches: Sequence[Sketch]) -> list[Sketch]:
    """The sketches. Raises ScheduleError for a step that reads a choice which its sketch does not have, or one of another number of parts."""
    reads: dict[int, tuple[str, ...]] = {}  # sketches share most of their steps
    for sketch in sketches:
        widths = dict(part for choice in sketch.choices for part in choice.numbers or ((choice.name, choice.table.shape[1]),))
        for step in sketch.steps:
            names = reads.get(id(step))
            names = reads.setdefault(id(step), _reads(step)) if names is None else names
            for name in names:
                _check_choice(step, name, widths)
    return list(sketches)


def _check_choice(step: Step, name: str, widths: Mapping[str, int]) -> None:
    wanted = step.parts - 1 if isinstance(step, Split | SplitOuter) else None
    if name in widths and wanted in (None, widths[name]):
        return
    loop = getattr(step, "loop", "")
    said = f"the step {type(step).__name__} of {step.stage}{f'.{loop}' if loop else ''} reads the choice {name}"
    if name not in widths:
        listed = f"it lists {', '.join(widths)}" if widths else "it is left out"
        raise ScheduleError(f"{said}, which `choices=[...]` does not list ({listed}); pass it too: sketch.then(..., choices=[choice])")
    found = counted(widths[name], "number")
    raise ScheduleError(f"{said} of {found} for {(wanted or 0) + 1} parts; give parts={widths[name] + 1}, or a choice of {counted(wanted or 0, 'number')}")


def _reads(step: Step) -> tuple[str, ...]:
    """The choices that a step takes its open numbers from."""
    if type(step).with_numbers is Step.with_numbers:
        return ()
    asked = defaultdict[str, tuple[int, ...]](lambda: (1,))
    step.with_numbers(asked)
    return tuple(asked)


def spaces(dag: Dag, target: Target, rules: Sequence[str | SketchRule] | None = None, used: set[int] | None = None) -> list[Sketch]:
    """Everything that is searched: each sketch with each loop order and location variant, with open annotations (unless the target leaves nothing open); at
    most PLACED times `most_sketches`.

    `rules` are names or values, the target's by default; `used` receives the numbers of the rules that applied.
    """
    found: dict[str, Sketch] = {}
    sketches = derive_sketches(dag, target.rules if rules is None else rules, target, used)
    most = int(PLACED * most_sketches(dag))
    for behind, sketch in zip(range(len(sketches) - 1, -1, -1), sketches, strict=True):
        for number, placed in enumerate(_placed(sketch, target)):
            if number and len(found) + behind >= most:
                break  # each later sketch still gets its first variant
            done = annotated(placed, target) if target.open_loops else placed
            found[done.name] = done
    return list(found.values())


def _placed(sketch: Sketch, target: Target) -> Iterator[Sketch]:
    if not target.open_loops:
        yield sketch
        return
    for ordered in loop_orders(sketch, target):
        yield from location_variants(ordered)
