"""Is a new version as fast as an old one? Times kernels, a network, the search and the import of both, alternately, in one run.

    git worktree add ../before COMMIT          # then run the README's install line there, to make ../before/.venv
    python benchmarks/two_versions.py ../before
    python benchmarks/two_versions.py ../before --only matmul softmax --turns 60

A process of each version prepares the same kernel, network or search. Then they time it alternately: old and new, new and old. `speed` is the new version's
speed relative to the old one: median and middle 80 % of the turns. `same` says whether both chose the same program without measuring: the same C text, or for
the search the same number of spaces. Each uses one thread.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from common import console, geomean, machine_line, parser, short, table
from twelve_operators import OPERATORS

from ansor.measure.interleaved import Times, ratio, timed

SEARCHES = ("matmul", "conv2d", "conv2d_nhwc", "depthwise", "softmax")
LEAST_SECONDS = {"kernel": 0.02, "network": 0.1, "search": 0.05}
ONE_THREAD = {**dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")}


@dataclass(frozen=True)
class Version:
    """A checkout with its own environment."""

    folder: Path
    python: str

    @classmethod
    def at(cls, folder: Path, python: str | None) -> Self:
        """The version in a folder. Raises SystemExit if it has no interpreter."""
        found = Path(python) if python else folder / ".venv" / "bin" / "python"
        if not found.exists():
            raise SystemExit(f"asked for the interpreter {found}, which does not exist; run the README's install line in {folder}, or give --python")
        return cls(folder, str(found))

    def import_seconds(self) -> float:
        """Wall time of a process that imports the package and ends."""
        return timed(lambda: subprocess.run([self.python, "-c", "import ansor"], check=True))


class Server:
    """A process of one version; see `version_server.py`."""

    def __init__(self, version: Version) -> None:
        script = Path(__file__).with_name("version_server.py")
        self._process = subprocess.Popen(
            [version.python, str(script), str(version.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **ONE_THREAD},
        )  # fmt: skip

    def ask(self, kind: str, name: str) -> str | float:
        """Ask for a digest the first time, and for seconds after that."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([kind, name, LEAST_SECONDS[kind]]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process for {name} ended with status {self._process.wait()}; its error is above")
        answer: str | float = json.loads(line)
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def in_turns(old: Server, new: Server, kind: str, name: str, turns: int) -> tuple[Times, Times]:
    """Seconds of both, timed alternately; each goes first every other turn."""
    found: dict[Server, list[float]] = {old: [], new: []}
    for turn in range(turns):
        for server in (old, new) if turn % 2 == 0 else (new, old):
            found[server].append(float(server.ask(kind, name)))
    return Times(tuple(found[old])), Times(tuple(found[new]))


def main() -> int:
    options = parser(__doc__)
    options.add_argument("before", type=Path, help="checkout of the old version")
    options.add_argument("--after", type=Path, default=Path(__file__).resolve().parents[1], help="checkout of the new version (default: this one)")
    options.add_argument("--python", nargs=2, metavar=("OLD", "NEW"), default=(None, None), help="interpreters (default: .venv/bin/python of each checkout)")
    jobs = [*(("kernel", name) for name in OPERATORS), ("network", "resnet18"), *(("search", name) for name in SEARCHES)]
    options.add_argument("--only", nargs="+", choices=sorted({name for _, name in jobs} | {"import"}), help="comparisons (default: all)")
    options.add_argument("--turns", type=int, default=30, help="turns of each comparison (default: %(default)s)")
    given = options.parse_args()
    versions = [Version.at(folder.resolve(), python) for folder, python in zip((given.before, given.after), given.python, strict=True)]
    old, new = map(Server, versions)
    shown = table(f"new version compared with the old one, {given.turns} turns", ["what", ""], ["old", "new", "speed", "same"])
    speeds: dict[str, list[float]] = {}
    try:
        for kind, name in jobs:
            if given.only and name not in given.only:
                continue
            same = old.ask(kind, name) == new.ask(kind, name)
            before, after = in_turns(old, new, kind, name, given.turns)
            found = ratio(after, before)
            speeds.setdefault(kind, []).append(found.median)
            shown.add_row(kind, name, short(before.median), short(after.median), str(found), "yes" if same else "no")
            print(f"{kind} {name}: {found}", file=sys.stderr, flush=True)
    finally:
        old.close()
        new.close()
    if not given.only or "import" in given.only:
        pairs = [(versions[0].import_seconds(), versions[1].import_seconds()) for _ in range(given.turns)]
        found = ratio(Times(tuple(b for _, b in pairs)), Times(tuple(a for a, _ in pairs)))
        shown.add_row("import", "ansor", *(short(statistics.median(side)) for side in zip(*pairs, strict=True)), str(found), "")
    out = console()
    out.print(shown)
    out.print(f"geomeans: {', '.join(f'{kind} {geomean(each):.3f}' for kind, each in speeds.items())}. {machine_line()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
