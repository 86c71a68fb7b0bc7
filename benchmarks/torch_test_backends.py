"""Runs PyTorch's own tests of torch.compile's backends, unchanged, with the backend ansor in place of those that they name.

    git clone --branch v2.13.0 --depth 1 https://github.com/pytorch/pytorch       # the version that is installed
    python benchmarks/torch_test_backends.py pytorch
    python benchmarks/torch_test_backends.py pytorch --files test/dynamo/test_misc.py --only sin --seconds 3000

`torch.compile(backend=NAME)` and `lookup_backend(NAME)` get ansor for all names that PyTorch knows; options and modes of other backends are dropped. Backends
that a test defines itself stay. By default it runs test/dynamo/test_backends.py. Tests are skipped by PyTorch's own marks: other devices, a missing package. If
gradients are enabled and weights require them, PyTorch runs the graph: `--no-grad` turns them off, so that our kernels run. It needs
`pip install expecttest`, and exits with 1 if a test fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
FILES = ("test/dynamo/test_backends.py",)
NAME = "ansor"


@dataclass(frozen=True)
class Case:
    """A test. outcome: passed, failed or skipped."""

    name: str
    outcome: str
    error: str = ""


def redirect() -> None:
    """Replace the named backends by ours."""
    import torch
    from torch._dynamo import eval_frame
    from torch._dynamo.backends import debugging, registry

    before, look_up, names = torch.compile, registry.lookup_backend, {*torch._dynamo.list_backends(exclude_tags=()), "tensorrt", "tvm"}

    def compile(model: Any = None, *, backend: Any = "inductor", mode: Any = None, options: Any = None, **rest: Any) -> Any:
        if isinstance(backend, str) and backend in names:
            backend, mode, options = NAME, None, options if backend == NAME else None
        return before(model, backend=backend, mode=mode, options=options, **rest)

    def lookup_backend(name: Any) -> Any:
        return look_up(NAME if isinstance(name, str) and name in names else name)

    torch.compile = compile
    modules: tuple[Any, ...] = (registry, debugging, eval_frame, torch._dynamo, torch._dynamo.backends)
    for module in modules:
        if hasattr(module, "lookup_backend"):
            module.lookup_backend = lookup_backend


def pytest_addoption(parser: Any) -> None:
    """Add our options. pytest in the child process loads this module as a plugin."""
    parser.addoption("--no-grad", action="store_true")


def pytest_configure(config: object) -> None:
    """Replace the backends before any test is imported."""
    redirect()


def pytest_runtest_setup(item: Any) -> None:
    """Turn gradients off with `--no-grad`."""
    import torch

    torch.set_grad_enabled(not item.config.getoption("--no-grad"))


def run(path: Path, only: str, seconds: int, no_grad: bool = False) -> list[Case]:
    """Run the tests of a file in a child process. Returns one failed case, named after the file, if no test could run."""
    with tempfile.TemporaryDirectory(prefix="torch-tests-") as folder:
        report = Path(folder) / "report.xml"
        plain = ["-q", "-p", "no:cacheprovider", "-p", "torch_test_backends", "-c", os.devnull, f"--rootdir={path.parent}", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", str(path), *plain, *(["-k", only] if only else []), *["--no-grad"] * no_grad]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return [Case(path.name, "failed", f"no end after {seconds} s")]
        if report.exists():
            return cases(report.read_text())
    return [Case(path.name, "failed", (done.stderr or done.stdout).strip().splitlines()[-1][:200])]


def cases(report: str) -> list[Case]:
    """The cases in a pytest report in JUnit's format."""
    return [_case(one) for one in ElementTree.fromstring(report).iter("testcase")]


def _case(one: ElementTree.Element) -> Case:
    name = f"{one.get('classname', '').rpartition('.')[2]}.{one.get('name')}"
    for found in one:
        if found.tag in ("failure", "error", "skipped"):
            return Case(name, "skipped" if found.tag == "skipped" else "failed", " ".join(found.get("message", "").split())[:200])
    return Case(name, "passed")


def text_of(file: str, found: Sequence[Case]) -> str:
    """The counts, then each test that failed with its error."""
    counts = Counter(one.outcome for one in found)
    head = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))
    return "\n".join([f"{file}: {head}", *(f"    {one.name}: {one.error}" for one in found if one.outcome == "failed")])


def main(arguments: Sequence[str] | None = None, run: Callable[[Path, str, int, bool], list[Case]] = run) -> int:
    """Run the chosen files, and print their outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="the folder of PyTorch's sources, in the installed version")
    parser.add_argument("--files", nargs="+", default=list(FILES), metavar="FILE", help="tests, by their paths in the checkout (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="WORDS", help="tests to select, as pytest's -k")
    parser.add_argument("--seconds", type=int, default=1800, help="time limit for one file (default: %(default)s)")
    parser.add_argument("--no-grad", action="store_true", help="turn gradients off, so that our kernels run")
    asked = parser.parse_args(arguments)
    missing = [file for file in asked.files if not (asked.checkout / file).is_file()]
    if missing:
        parser.error(f"asked for tests in {asked.checkout}, which has no {missing[0]}; give the folder of PyTorch's sources")
    failed = False
    for file in asked.files:
        found = run((asked.checkout / file).resolve(), asked.only, asked.seconds, asked.no_grad)
        failed |= any(one.outcome == "failed" for one in found)
        print(text_of(file, found), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
