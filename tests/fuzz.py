"""Compares any number of random programs with NumPy:

    python tests/fuzz.py --programs 10000                  compiled as it is shipped, and interpreted where that is quick
    python tests/fuzz.py --programs 1000 --sanitize        under gcc's address and undefined-behaviour sanitizers
    python tests/fuzz.py --only expressions:148            one declaration again

Prints a line of progress every few seconds, then counts by kind, and of the failing programs the first and the shortest. Ends with code 1 when any failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from ansor.codegen.toolchain import find_compiler
from tests.declarations import seeded_draw
from tests.half_declarations import HALF_KINDS, half_case
from tests.mixed_declarations import ALL_KINDS, any_case
from tests.programs import QUICK, Bench, Program, interpreted, programs_of, sanitized_problems, sanitizer_compiler

KINDS = [*sorted(ALL_KINDS), *sorted(HALF_KINDS)]
TOGETHER = 40  # programs in one translation unit
INTERPRETED = 3000  # statements above which a program is not interpreted
SHIPPED = ("-ftrivial-auto-var-init=pattern",)  # on top of the flags of every kernel


@dataclass(frozen=True)
class Failed:
    """A wrong program, its origin, and what was wrong."""

    origin: str
    program: Program | None
    problem: str

    @property
    def length(self) -> int:
        """The length of its C text: the shortest is the easiest to debug."""
        try:
            return len(self.program.source.text) if self.program else 0
        except Exception:  # generating it is what failed
            return 0

    def report(self, folder: Path) -> str:
        """Everything needed to reproduce it; the C text is written to `folder`."""
        lines = [f"{self.origin}    (again: python tests/fuzz.py --only {self.origin})"]
        if self.program is not None:
            lines.append(str(self.program))
            try:
                path = folder / f"{self.origin.replace(':', '-')}.c"
                path.write_text(self.program.source.text)
                lines.append(f"C text in {path}")
            except Exception as error:
                lines.append(f"no C text: {error!r}")
        return "\n".join([*lines, self.problem])


@dataclass
class Run:
    """Counts of a run."""

    checked: Counter[str] = field(default_factory=Counter)
    interpreted: int = 0
    declarations: int = 0
    failed: list[Failed] = field(default_factory=list)


def origins(words: Sequence[str], kinds: Sequence[str], seed: int) -> Iterator[tuple[str, int]]:
    """The declarations to draw: those asked for, or every kind in turn without end (random expressions three times as often)."""
    if words:
        for word in words:
            kind, _, number = word.partition(":")
            yield kind, int(number)
        return
    while True:
        for kind in kinds:
            for k in range(3 if kind == "expressions" else 1):
                yield kind, 3 * seed + k
        seed += 1


def drawn(kind: str, number: int, run: Run) -> list[tuple[str, Program]]:
    """Every sketch of one declaration at a random row."""
    origin = f"{kind}:{number}"
    draw = seeded_draw(number)
    try:
        found = programs_of(draw, half_case(draw, kind) if kind in HALF_KINDS else any_case(draw, kind))
    except Exception:
        run.failed.append(Failed(origin, None, traceback.format_exc()))
        return []
    run.declarations += 1
    return [(origin, program) for program in found]


def generated(programs: Sequence[tuple[str, Program]], run: Run) -> list[tuple[str, Program]]:
    """The programs that lower, generate, and are interpreted correctly (or take too long to interpret)."""
    good = []
    for origin, program in programs:
        try:
            problem = interpreted(program, INTERPRETED)
            program.source  # noqa: B018  # generating it may fail, too
        except Exception:
            problem = traceback.format_exc()
        run.interpreted += problem is not None
        if problem:
            run.failed.append(Failed(origin, program, f"interpreted: {problem}"))
        else:
            good.append((origin, program))
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000, help="how many to run")
    parser.add_argument("--seed", type=int, default=0, help="where to begin")
    parser.add_argument("--sanitize", action="store_true", help="with gcc's address and undefined-behaviour sanitizers")
    parser.add_argument("--quick", action="store_true", help="compile with -O1")
    parser.add_argument("--compiler", default="", help="C compiler command, the embedded one when left out")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind of declaration (may be repeated)")
    parser.add_argument("--only", action="append", default=[], metavar="KIND:SEED", help="only this declaration (may be repeated)")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    gcc = sanitizer_compiler()
    if given.sanitize and not gcc:
        print("no gcc with sanitizers on this machine")
        return 1
    kept = Path(tempfile.mkdtemp(prefix="ansor-fuzz-"))
    with tempfile.TemporaryDirectory(prefix="ansor-fuzz-work-") as folder:
        bench = Bench(find_compiler(given.compiler), Path(folder), QUICK if given.quick else SHIPPED)
        run = Run()
        waiting: list[tuple[str, Program]] = []
        begun = told = time.monotonic()

        def flush() -> None:
            programs = [program for _, program in waiting]
            problems = sanitized_problems(programs, Path(folder), gcc) if given.sanitize else bench.problems(programs)
            for (origin, program), problem in zip(waiting, problems, strict=True):
                run.checked[program.case.kind] += 1
                if problem:
                    print(f"{origin}: {problem[:300]}", flush=True)
                    run.failed.append(Failed(origin, program, problem))
            waiting.clear()

        for kind, number in origins(given.only, given.kind or KINDS, given.seed):
            left = given.programs - run.checked.total() - len(waiting)
            if left <= 0:
                break
            waiting += generated(drawn(kind, number, run)[:left], run)
            if len(waiting) >= TOGETHER:
                flush()
            if time.monotonic() - told > 5:
                told = time.monotonic()
                rate = run.checked.total() / (told - begun)
                print(f"{run.checked.total()} of {given.programs} programs, {rate:.0f}/s, {len(run.failed)} failed", flush=True)
        if waiting:
            flush()
        seconds = time.monotonic() - begun
    return summary(run, seconds, "sanitized" if given.sanitize else "compiled", kept)


def summary(run: Run, seconds: float, how: str, kept: Path) -> int:
    """Print what was run and what failed; returns the exit code."""
    print(f"{run.checked.total()} programs {how}, {run.interpreted} interpreted, of {run.declarations} declarations, in {seconds:.0f} s")
    wrong = Counter(failed.origin.partition(":")[0] for failed in run.failed)
    for kind, count in sorted(run.checked.items()):
        print(f"  {kind:18} {count:6}" + (f"   {wrong[kind]} FAILED" if wrong[kind] else ""))
    if not run.failed:
        kept.rmdir()
        print("all right")
        return 0
    print(f"{len(run.failed)} failed; the first:\n{run.failed[0].report(kept)}")
    shortest = min(run.failed, key=lambda failed: failed.length)
    if shortest is not run.failed[0]:
        print(f"\nthe shortest:\n{shortest.report(kept)}")
    print("\nall that failed: " + " ".join(sorted({failed.origin for failed in run.failed})))
    return 1


if __name__ == "__main__":
    sys.exit(main())
