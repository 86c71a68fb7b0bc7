"""An `Explanation` as plain text for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

from ansor.explain.explanation import FOLDS
from ansor.explain.steps_in_words import Fact
from ansor.explain.values import AxisTiles, Cost, Explanation, MainStatement, Program, Ranking, RegisterTile, Rival, Roof, Rules, UnusedOption
from ansor.support.text import counted, format_bytes, format_count
from ansor.tasks.origins import RULES, origin_of

WIDTH = 110
"""Columns of the text. Longer names are not cut."""

SEEN = 0.02
"""Below this relative difference, two cycle estimates count as equal, and the order of two times may be chance."""

CLOSE = 1.15
"""Below this ratio, the estimate and the time count as equal: the clock is known only from the peak."""

COLUMN = 32
"""Texts that start to the right of this do not continue in their own column."""

HARD = "\u00a0"
"""A space at which lines do not break."""


def explanation_text(one: Explanation, width: int = WIDTH) -> str:
    """The whole explanation, a few lines per question: what, how, in which tiles, as expected or not, and what lost."""
    parts = [_summary(one), _how(one), _pieces(one), _expected(one), _lost(one)]
    return "\n\n".join("\n".join(wrapped for line in part for wrapped in _wrapped(line, width)) for part in parts)


def _wrapped(line: str, width: int) -> list[str]:
    """Continue a long line under its second column, or indented by two."""
    indent = len(line) - len(line.lstrip())
    column = line.find("  ", indent)
    while column != -1 and column < len(line) and line[column] == " ":
        column += 1
    further = column if indent < column <= indent + COLUMN else indent + 2
    found = textwrap.wrap(line.strip(), width - indent, subsequent_indent=" " * (further - indent), break_long_words=False, break_on_hyphens=False)
    return [(" " * indent + part).replace(HARD, " ") for part in found] if len(line) > width else [line.replace(HARD, " ")]


def _summary(one: Explanation) -> list[str]:
    best = one.best.measured
    valid = "all valid" if one.trials.valid == one.trials.count else f"{one.trials.valid} valid"
    lines = [f"{one.work.name} for {one.place.target}"]
    unit = one.trials.unit
    lines.append(f"  {counted(one.trials.count, 'trial')}, {valid}; best {unit.text(best)}, {unit.rate(one.work.flop, best)}{_of_peak(one)}")
    lines += _moved(one)
    if one.trials.valid > 1:
        lines.append(f"  the median of the valid ones takes {one.trials.unit.text(one.trials.median)}, {one.trials.median / best:.2f} times as long")
    if one.trials.failures:
        lines.append(f"  failures: {', '.join(f'{kind} {count}' for kind, count in one.trials.failures)}")
    return lines


def _of_peak(one: Explanation) -> str:
    peak = one.place.peak_gflops
    return "" if peak is None else f", {one.work.flop / one.best.measured / 1e7 / peak:.0f} % of the peak of {peak:g} GFLOP/s"


def _moved(one: Explanation) -> list[str]:
    """The bytes of the arguments, how fast they are moved and what limits that, if costs are times."""
    work, unit = one.work, one.trials.unit
    if not (unit.scale and work.bytes):
        return []
    gbytes = work.bytes / (one.best.measured * unit.scale) / 1e9
    what = f"{work.flop / work.bytes:.3g} operations a byte of the arguments, each moved once"
    return [f"  {what}: {_bytes(work.bytes)} in {unit.text(one.best.measured)}, {gbytes:.3g} GB/s{_limit(one, gbytes)}"]


def _limit(one: Explanation, gbytes: float) -> str:
    """Whether memory is the limit, as far as the bandwidth and the caches tell."""
    work, peak, bandwidth = one.work, one.place.peak_gflops, one.place.bandwidth_gbytes
    if work.fits in dict(one.place.caches):
        return f"; they fit in {work.fits} and can stay there from run to run, so memory is not the limit"
    if bandwidth is None:
        return ""
    share = f", {100 * gbytes / bandwidth:.0f} % of the bandwidth of {bandwidth:g} GB/s"
    if gbytes > bandwidth:
        return f"{share}, so part of them stays in a cache"
    if peak is None:
        return share
    limit = "memory" if work.flop / work.bytes < Roof(peak, bandwidth).knee else "arithmetic"
    return f"{share}; at so many operations a byte, {limit} is the limit"


# how ------------------------------------------------------------------------------------------------------------------------------------------------


def _how(one: Explanation) -> list[str]:
    others = [f"{other.name or 'the declaration as it is'} ({_tried(other, one.best.measured)})" for other in one.lost.algorithms]
    searched = f"; also searched: {', '.join(others)}" if others else ""
    return [f"How: {_way(one.best.algorithm)}{searched}", *_stages(one.best.facts), *_rules(one.rules, one.best)]


def _way(algorithm: str) -> str:
    """The origin of a program."""
    if origin_of(algorithm) != RULES:
        return f"by {algorithm}"
    return f"by another algorithm, {algorithm}" if algorithm else "as declared"


def _stages(facts: Sequence[Fact]) -> list[str]:
    stages = dict.fromkeys(one.stage for one in facts)
    return _columns((stage, "; ".join(one.text for one in facts if one.stage == stage)) for stage in stages) or ["  loops as declared"]


def _rules(rules: Rules, best: Program) -> list[str]:
    rows = []
    if rules.fired:
        rows.append(("rules that led here", ", ".join(f"{name} ({', '.join(stages)})" for name, stages in rules.fired)))
    if rules.without:
        texts = [f"{one.name} ({_tried(one, best.measured)})" for one in rules.without]
        rows.append((f"apply to {rules.stage}, but not used", ", ".join(texts)))
    if rules.idle:
        rows.append((f"do not apply to {rules.stage}", ", ".join(rules.idle)))
    return _columns(rows)


def _tried(one: UnusedOption, best: float) -> str:
    if not one.trials:
        return "no trial"
    return f"{counted(one.trials, 'trial')}, {f'best {one.measured / best:.2f} times as long' if math.isfinite(one.measured) else 'none valid'}"


# tiles ----------------------------------------------------------------------------------------------------------------------------------------------


def _pieces(one: Explanation) -> list[str]:
    main, most = one.main, "work" if one.best.whole else "estimated cycles"
    lines = [f"Tiles: {main.stage}, the stage with the most {most}, from the outermost loop to the innermost"]
    lines += _tiles(main.tiles)
    if one.best.whole:  # only processors have these registers and caches
        return lines
    if main.register_tile is not None:
        lines += [f"  registers  {_register_tile(main.register_tile)}"]
    return lines + _levels(main) + _caches(one)


def _tiles(tiles: Sequence[AxisTiles]) -> list[str]:
    shown = [one for one in tiles if one.extent > 1]
    wide, digits = max((len(one.axis) for one in shown), default=0), max((len(str(one.extent)) for one in shown), default=0)
    return [f"  {one.axis:<{wide}}  {one.extent:>{digits}} = {_lengths(one.lengths)}{_uneven(one)}" for one in shown]


def _lengths(lengths: Iterable[int]) -> str:
    return f"{HARD}x{HARD}".join(map(str, lengths))


def _uneven(one: AxisTiles) -> str:
    covered = math.prod(one.lengths)
    return "" if covered == one.extent else ", the last tile is shorter" if covered > one.extent else ", one tile at a time"


def _register_tile(tile: RegisterTile) -> str:
    what = "partial result" if tile.partial else "result"
    shape = counted(tile.rows * tile.vectors, what) if tile.scalar else f"{counted(tile.rows, 'row')} of {counted(tile.vectors, 'vector')} of {what}s"
    offsets = f" and {tile.accumulators - tile.rows * tile.vectors} of offsets" if tile.accumulators != tile.rows * tile.vectors else ""
    return f"{shape}{offsets}: {tile.accumulators} of {tile.most} accumulators, {counted(tile.operands, 'operand')}, {tile.registers} registers"


def _levels(main: MainStatement) -> list[str]:
    name = [f"{one.loop} ({one.extent})" if one.loop else "all of it" for one in main.levels]
    wide = max(map(len, ["one iteration of", *name]))
    lines = [f"  {'one iteration of':<{wide}}     touches  fits"]
    return lines + [
        f"  {text:<{wide}}  {_bytes(one.bytes):>10}  {one.fits}{f'  {one.runs}' if one.runs else ''}" for text, one in zip(name, main.levels, strict=True)
    ]


def _caches(one: Explanation) -> list[str]:
    sizes, enter = dict(one.place.caches), dict(one.main.loaded)
    texts = [f"{name} ({_bytes(size)}) {_bytes(enter[name])}" for name, size in sizes.items()]
    fits = f"a tile fits if it fills {100 * one.place.fill:.0f} % of a cache or less (for L1: of the sets that it maps to)"
    return [f"  loaded over the whole run: into {', '.join(texts)}; {fits}"] if texts else []


# expected -------------------------------------------------------------------------------------------------------------------------------------------


def _expected(one: Explanation) -> list[str]:
    best = one.best
    if best.whole:
        lines = [f"Expected: {_count(best.cycles)} cycles by the estimate of the target; measured {one.trials.unit.text(best.measured)}"]
        return lines + ([f"  it {_ranking(one.rankings.by_estimate)}"] if one.trials.valid > 1 else [])
    lines = ["Expected: cycles by the estimate", *_cost_rows(best), _larger_part(best, one.place.peak_gflops)]
    lines.append(f"  measured {one.trials.unit.text(best.measured)}{_clock(one)}{_floor(one)}")
    if one.trials.valid > 1:
        lines.append(f"  the estimate {_ranking(one.rankings.by_estimate)}")
    if one.rankings.by_model is not None:
        lines.append(f"  the learned model, trained on {FOLDS - 1} of {FOLDS} trials and tested on the rest, {_ranking(one.rankings.by_model)}")
    return lines


def _cost_rows(best: Program) -> list[str]:
    """A row for each statement, and their sums; a column for starting threads if any statement does."""
    named = _parts(best) | {"   sum": "cycles"}
    wide = max(len("in all"), *(len(cost.stage) for cost in best.costs))
    rows: list[tuple[str, Cost | Program]] = [(cost.stage, cost) for cost in best.costs]
    rows += [("in all", best)] if len(rows) > 1 else []
    return [f"  {'':<{wide}}  {'  '.join(named)}"] + [
        f"  {name:<{wide}}  {'  '.join(f'{_count(getattr(cost, part)):>{len(title)}}' for title, part in named.items())}" for name, cost in rows
    ]


def _parts(*programs: Program) -> dict[str, str]:
    """The parts of an estimate, as fields of `Program` and `Cost`; starting threads only if a program does."""
    return {"instructions": "instructions", "transfers": "transfers"} | ({"starting threads": "fork"} if any(one.fork for one in programs) else {})


def _larger_part(best: Program, peak: float | None) -> str:
    """Whether the main stage's estimate is arithmetic, memory or threads, and its share of all cycles if there are other stages."""
    own = [cost for cost in best.costs if cost.stage == best.main]
    parts = {"arithmetic (instructions)": "instructions", "memory (transfers)": "transfers", "starting threads": "fork"}
    sums = {what: sum(getattr(cost, part) for cost in own) for what, part in parts.items()}
    what = max(sums, key=lambda one: sums[one])
    limit = ", so the peak is not the limit" if peak is not None and sums[what] > sums["arithmetic (instructions)"] else ""
    larger = "largest" if sums["starting threads"] else "larger"
    if len(own) == len(best.costs):
        return f"  the {larger} part of these cycles is for {what}{limit}"
    return f"  {best.main} takes {100 * sum(sums.values()) / best.cycles:.0f} % of these cycles, the {larger} part for {what}{limit}"


def _clock(one: Explanation) -> str:
    """How far off the estimate is, if costs are times: by the clock of the peak, else as the clock at which it would be right."""
    if not one.trials.unit.scale:
        return ""
    needed = one.best.cycles / one.best.measured / one.trials.unit.scale
    if one.place.clock is None:
        return f"; the estimate is right if the clock runs at {needed / 1e9:.2f} GHz, and too slow if it runs slower"
    ratio = needed / one.place.clock
    if max(ratio, 1 / ratio) < CLOSE:
        return "; the estimate is about right"
    return f"; the estimate is about {max(ratio, 1 / ratio):.1f} times too {'slow' if ratio > 1 else 'fast'}"


def _floor(one: Explanation) -> str:
    if one.work.floor is None:
        return ""
    return f"; the arithmetic as declared takes at least {_count(one.work.floor)} cycles, {100 * one.work.floor / one.best.cycles:.0f} % of the estimate"


def _ranking(one: Ranking) -> str:
    return f"ranks the best at place {one.place} of {one.count} (rank correlation with the times {one.correlation:.2f})"


# lost -----------------------------------------------------------------------------------------------------------------------------------------------


def _lost(one: Explanation) -> list[str]:
    lines = ["Lost:" if one.lost.other_sketch or one.lost.other_tiles else "Lost: nothing else was valid"]
    for rival, what in ((one.lost.other_sketch, "the best of another sketch"), (one.lost.other_tiles, "the best other program of the same sketch")):
        if rival is not None:
            lines += _rival(one, rival, what)
    return lines


def _rival(one: Explanation, rival: Rival, what: str) -> list[str]:
    best, other = one.best, rival.program
    by = "" if other.algorithm == best.algorithm else f", {_way(other.algorithm)}"
    lines = [f"  {what}: {one.trials.unit.text(other.measured)}, {other.measured / best.measured:.2f} times as long{by}"]
    rows = [("only the best", _listed(rival.ours)), ("only this one", _listed(rival.theirs))]
    rows += [("tiles", _changed(rival))]
    rows += [("estimate", _blamed(best, other))]
    return lines + _columns([row for row in rows if row[1]], 4)


def _changed(rival: Rival) -> str:
    """`c_local: i 8 x 16 -> 4 x 32, k 128 -> 2 x 64`."""
    stages = dict.fromkeys(stage for stage, *_ in rival.tiles)
    texts = {stage: ", ".join(f"{axis} {_lengths(a)} -> {_lengths(b)}" for name, axis, a, b in rival.tiles if name == stage) for stage in stages}
    return ". ".join(f"{stage}: {text}" for stage, text in texts.items())


def _listed(facts: Sequence[Fact]) -> str:
    stages = dict.fromkeys(one.stage for one in facts)
    return ". ".join(f"{stage}: {'; '.join(one.text for one in facts if one.stage == stage)}" for stage in stages)


def _blamed(best: Program, other: Program) -> str:
    """Which part of the estimate accounts for the difference, if any does."""
    parts = _parts(best, other)
    more = {name: getattr(other, part) - getattr(best, part) for name, part in parts.items()}
    numbers = ", ".join(f"{name} {_arrow(getattr(best, part), getattr(other, part))}" for name, part in parts.items())
    if best.whole:
        numbers = f"cycles {_arrow(best.cycles, other.cycles)}"
    if other.measured <= (1 + SEEN) * best.measured:
        return f"{numbers}: the times are so close that the ranking may be chance"
    if sum(map(abs, more.values())) <= SEEN * best.cycles:
        return f"{numbers}: it predicts no difference"
    if sum(more.values()) <= 0:
        return f"{numbers}: it predicts that this one is faster, so it does not model the cause"
    if best.whole:
        return f"{numbers}: it predicts the difference"
    large = [name if name == "starting threads" else f"the {name}" for name, cycles in more.items() if cycles >= max(more.values()) / 2]
    return f"{numbers}: the difference is in {'both' if len(large) == len(more) == 2 else ' and '.join(large)}"


def _arrow(ours: float, theirs: float) -> str:
    return f"{_count(ours)} -> {_count(theirs)}"


def _count(count: float) -> str:
    return format_count(count).replace(" ", HARD)


def _bytes(count: float) -> str:
    return format_bytes(count).replace(" ", HARD)


def _columns(rows: Iterable[tuple[str, str]], indent: int = 2) -> list[str]:
    """Rows of a name and a text, with the texts aligned."""
    known = list(rows)
    wide = max((len(name) for name, _ in known), default=0)
    return [f"{' ' * indent}{name:<{wide}}  {text}" for name, text in known]
