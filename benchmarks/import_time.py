"""The time of `import ansor`, compared with an interpreter that imports nothing.

    python benchmarks/import_time.py

Processes are started alternately. It fails if the import takes 0.3 s or more, or loads torch or lightgbm.
"""

from __future__ import annotations

import subprocess
import sys

from common import console, machine_line, parser, short, table

from ansor.measure.interleaved import interleaved

LIMIT_SECONDS = 0.3
HEAVY = ("torch", "lightgbm")
STATEMENTS = {
    "nothing": "pass",
    "import ansor": "import ansor",
    "first use: ansor.te": "import ansor; ansor.te",
    "first use: ansor.auto_schedule": "import ansor; ansor.auto_schedule",
    "import numpy (for scale)": "import numpy",
}


def run(statement: str) -> str:
    """Run a statement in a new interpreter; returns its output."""
    return subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True, text=True).stdout


def heavy_after(statement: str) -> list[str]:
    """Which of the heavy packages a statement loads."""
    return run(f"{statement}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])").split()


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--turns", type=int, default=15, help="processes started for each statement (default: %(default)s)")
    given = options.parse_args()
    out = console()
    times = interleaved({name: (lambda text=text: run(text)) for name, text in STATEMENTS.items()}, given.turns)
    bare = times["nothing"].median
    shown = table(f"import time, medians of {given.turns} processes", ["statement"], ["process", "extra", "torch, lightgbm loaded"])
    failed = False
    for name, text in STATEMENTS.items():
        heavy = heavy_after(text)
        beyond = times[name].median - bare
        shown.add_row(name, short(times[name].median), short(beyond) if name != "nothing" else "", ", ".join(heavy) or "no")
        failed |= bool(heavy) or (name == "import ansor" and beyond >= LIMIT_SECONDS)
    out.print(shown)
    out.print(machine_line())
    if failed:
        out.print(f"FAILED: the limit is {LIMIT_SECONDS} s, and {' and '.join(HEAVY)} must not be loaded")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
