"""A table of outcome counts, by kind of case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def outcome_lines(heading: str, cases: Sequence[tuple[str, str]], outcomes: Sequence[str]) -> list[str]:
    """A line for each kind, and one for the total. cases: the kind and outcome of each case."""
    kinds = [*sorted({kind for kind, _ in cases}), "all"]
    width = max(map(len, (heading, *kinds))) + 2
    lines = [f"{heading:{width}s}" + "".join(f"{outcome:>9s}" for outcome in outcomes)]
    for kind in kinds:
        counts = Counter(outcome for one, outcome in cases if kind in (one, "all"))
        lines.append(f"{kind:{width}s}" + "".join(f"{counts[outcome]:9d}" for outcome in outcomes))
    return lines
