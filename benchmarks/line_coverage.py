"""Which statements of the package are reached by something other than their own test: tests run under coverage.py, one context for each test file.

    python benchmarks/line_coverage.py                                       # all tests: an hour or two
    python benchmarks/line_coverage.py --tests tests/ir tests/schedule       # some of them
    python benchmarks/line_coverage.py --also benchmarks/onnx_operators.py   # scripts as well
    python benchmarks/line_coverage.py --missing ansor/onnx                  # the lines that only their own test reaches, or nothing

The own test of `ansor/run/pace.py` is `tests/run/test_pace.py`. `reached` counts statements that any test reaches, `by others` those that another test or a
script reaches. Processes that tests start are included unless they are killed, so workers of farms are counted too low. Needs `pip install -e
'.[test,bench]'`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ansor", "rules", "cost_model", "measure", "targets")
FILE = "ANSOR_TEST_FILE"
"""The environment variable that gives processes started by a test its file."""

RULES = "ANSOR_COVERAGE_RULES"
"""The environment variable with the configuration file, which these processes read."""

CONFIG = """[run]
source =
    {packages}
data_file = {folder}/.coverage
parallel = true
context = ${{ANSOR_TEST_FILE-}}
patch =
    subprocess
    _exit
disable_warnings = no-data-collected,module-not-measured,module-not-imported,couldnt-parse,no-contexts,trace-changed,already-imported,dynamic-conflict
[report]
exclude_also =
    if TYPE_CHECKING:
    assert_never\\(
    ^\\s*\\.\\.\\.$
    : \\.\\.\\.$
"""


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """As a plugin of pytest: what a test reaches is noted under its file."""
    os.environ[FILE] = item.location[0]
    os.environ["COVERAGE_PROCESS_START"] = os.environ[RULES]
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)  # it would give them the context of this process, which has none
    current = coverage.Coverage.current()
    if current is not None:
        current.switch_context(item.location[0])
    try:
        return (yield)
    finally:
        if current is not None:
            current.switch_context("")
        os.environ.pop(FILE)


@dataclass(frozen=True)
class Reached:
    """One file: its statements, those that anything reaches, and those that something other than its own test reaches."""

    path: Path
    statements: frozenset[int]
    any: frozenset[int]
    by_others: frozenset[int]

    @property
    def folder(self) -> str:
        """The row of the table: the package, or the folder in `ansor`."""
        parts = self.path.parts
        return "/".join(parts[:2]) if parts[0] == "ansor" and len(parts) > 2 else parts[0]


def own_test(path: Path) -> str:
    """The test file that mirrors a source file, both relative to the project."""
    parts = path.parts[1:] if path.parts[0] == "ansor" else path.parts
    return str(Path("tests", *parts[:-1], f"test_{path.stem}.py"))


def run(config: Path, words: Sequence[str]) -> None:
    """Run Python with these words under coverage; what it returns does not matter."""
    path = os.pathsep.join([str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={config}", *words]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path, RULES: str(config)}, check=False)


def reached(config: Path, folder: Path) -> Iterator[Reached]:
    """The files of the package, by what the runs noted in `folder`."""
    measured = coverage.Coverage(config_file=str(config))
    measured.combine([str(folder)])
    found = measured.get_data()
    for package in PACKAGES:
        for source in sorted((ROOT / package).rglob("*.py")):
            path = source.relative_to(ROOT)
            statements = frozenset(measured.analysis2(str(source))[1])
            by_line = {line: {name.rpartition("|")[2] for name in names} for line, names in found.contexts_by_lineno(str(source)).items()}
            lines = frozenset(by_line) & statements
            yield Reached(path, statements, lines, frozenset(line for line in lines if by_line[line] - {own_test(path)}))


def table(files: Sequence[Reached]) -> list[str]:
    """A row for each folder, fewest first, and one for all."""
    totals: dict[str, Counter[str]] = {}
    for one in files:
        for name in (one.folder, "all"):
            totals.setdefault(name, Counter()).update(statements=len(one.statements), any=len(one.any), others=len(one.by_others))
    rows = sorted(totals.items(), key=lambda row: (row[0] == "all", row[1]["others"] / max(row[1]["statements"], 1)))
    lines = [f"{'folder':<22} {'statements':>10} {'reached':>8} {'by others':>9}"]
    for name, counts in rows:
        of = max(counts["statements"], 1)
        lines.append(f"{name:<22} {counts['statements']:>10,} {counts['any'] / of:>8.1%} {counts['others'] / of:>9.1%}")
    return lines


def missing(files: Sequence[Reached], under: str) -> list[str]:
    """The statements of each file under a path that nothing else than its own test reaches."""
    chosen = [one for one in files if str(one.path).startswith(under) and one.statements - one.by_others]
    return [f"{one.path}: {' '.join(map(str, sorted(one.statements - one.by_others)))}" for one in chosen]


def main(words: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", nargs="+", default=["tests"], metavar="PATH", help="tests to run (default: all)")
    parser.add_argument("--also", nargs="+", default=[], metavar="SCRIPT", help="scripts to run after them, without arguments")
    parser.add_argument("--missing", metavar="PATH", help="list the lines of files under PATH that only their own test reaches, or nothing")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "coveragerc"
        config.write_text(CONFIG.format(packages="\n    ".join(str(ROOT / package) for package in PACKAGES), folder=folder))
        run(config, ["-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", Path(__file__).stem, *asked.tests])
        for script in asked.also:
            run(config, [script])
        files = list(reached(config, folder))
    print("\n".join([*table(files), *(missing(files, asked.missing) if asked.missing else ())]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
