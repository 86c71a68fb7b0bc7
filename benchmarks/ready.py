"""Times how long a network takes to be ready in a second process, part by part: `ansor.compile` and `torch.compile(backend="ansor")`, nothing tuned.

    python benchmarks/ready.py                          # 15 networks
    python benchmarks/ready.py resnet18 bert --threads 2
    python benchmarks/ready.py resnet18 --profile       # also functions by their own time

Each row is a separate process, after one that did the same; both use the same cache folder (`--cache`), which is kept. Seconds are wall time, followed by
processor time in brackets. `ready` includes all parts except `import torch` and `imports` (everything else that is imported, mostly from PyTorch). For
torch.compile, `ready` is the first call, which PyTorch traces; `call` is the second one.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

WAYS = ("compile", "torch.compile")
PARTS = {
    "export": [("torch.export", "export")],
    "rewriting": [("ansor.graph.from_torch", "_as_aten")],
    "reading": [("ansor.graph.from_torch", "_as_exported"), ("ansor.graph.from_torch._Reader", "read")],
    "passes": [("ansor.graph.tasks", "optimised")],
    "groups": [("ansor.graph.tasks", "fused"), ("ansor.graph.tasks", "structural_key")],
    "declaring": [("ansor.graph.tasks", "declaration")],
    "finding": [("ansor.networks.kept_plans", "name_of"), ("ansor.networks.kept_plans", "found"), ("ansor.torch_backend._Networks", "_name")],
    "placing": [("ansor.graph.network.CompiledNetwork", "__init__")],
}
"""The functions of each part. A part's time excludes that of other parts inside it."""

Seconds = tuple[float, float]


class Clock:
    """Wall time and processor time of parts, each without the parts nested in it."""

    def __init__(self) -> None:
        self.parts: dict[str, Seconds] = {}
        self._inside: list[Seconds] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Counts the time of the `with` block as this part's."""
        begin = now()
        self._inside.append((0.0, 0.0))
        try:
            yield
        finally:
            took = minus(now(), begin)
            inside = self._inside.pop()
            own = minus(took, inside)
            before = self.parts.get(name, (0.0, 0.0))
            self.parts[name] = (before[0] + own[0], before[1] + own[1])
            if self._inside:
                outer = self._inside[-1]
                self._inside[-1] = (outer[0] + took[0], outer[1] + took[1])

    def watch(self, name: str, holder: object, attribute: str) -> None:
        """Counts the time of each call of a function as this part's."""
        function: Callable[..., object] = getattr(holder, attribute)

        @wraps(function)
        def watched(*args: object, **kwargs: object) -> object:
            with self.part(name):
                return function(*args, **kwargs)

        setattr(holder, attribute, watched)


def now() -> Seconds:
    return time.perf_counter(), time.process_time()


def minus(later: Seconds, earlier: Seconds) -> Seconds:
    return later[0] - earlier[0], later[1] - earlier[1]


def found(path: str) -> object:
    """An imported module, or a class in one."""
    if path in sys.modules:
        return sys.modules[path]
    module, _, name = path.rpartition(".")
    return getattr(sys.modules[module], name)


def measured(name: str, way: str, given: argparse.Namespace) -> dict[str, Seconds]:
    """Times the parts of one network in this process."""
    clock = Clock()
    with clock.part("import torch"):
        import torch
    torch.set_num_threads(given.threads)
    from network_models import NETWORKS

    model, inputs = NETWORKS[name].model(), NETWORKS[name].inputs(given.batch)
    with clock.part("imports"):
        import torch._dynamo
        import torch.export

        import ansor.graph.tasks
        import ansor.networks.compiling
        import ansor.torch_backend
    for part, functions in PARTS.items():
        for path, attribute in functions:
            clock.watch(part, found(path), attribute)
    profile = cProfile.Profile() if given.profile else None
    begin = now()
    if profile is not None:
        profile.enable()
    with clock.part("other"), torch.no_grad():
        network: Any
        if way == "compile":
            network = ansor.compile(model, inputs, f"cpu -threads={given.threads}", progress=False)
        else:
            network = torch.compile(model, backend="ansor", options={"threads": given.threads})
            network(*inputs)
    if profile is not None:
        profile.disable()
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(given.lines).sort_stats("cumulative").print_stats(given.lines)
    ready = minus(now(), begin)
    begin = now()
    with torch.no_grad():
        network(*inputs)
    return {**clock.parts, "ready": ready, "call": minus(now(), begin)}


def child(name: str, way: str, given: argparse.Namespace) -> dict[str, Seconds]:
    """The times of the parts in a separate process."""
    command = [sys.executable, *sys.argv, "--child", way, "--only", name]
    environment = {**os.environ, "ANSOR_CACHE": str(given.cache.absolute())}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    parts: dict[str, Seconds] = json.loads(done.stdout.splitlines()[-1])
    return parts


def main() -> int:
    from network_models import NETWORKS

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", choices=[*NETWORKS, []], metavar="network", help=f"of {', '.join(NETWORKS)} (default: all)")
    options.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options.add_argument("--batch", type=int, default=1, help="batch size (default: %(default)s)")
    options.add_argument("--threads", type=int, default=1, help="threads of kernels and of PyTorch (default: %(default)s)")
    options.add_argument("--cache", type=Path, default=Path("build") / "ready", help="cache folder (default: %(default)s)")
    options.add_argument("--first", action="store_true", help="also show the first process")
    options.add_argument("--profile", action="store_true", help="print a profile of each process")
    options.add_argument("--lines", type=int, default=40, help="lines of each profile (default: %(default)s)")
    options.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options.add_argument("--only", help=argparse.SUPPRESS)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    if given.child:
        print(json.dumps(measured(given.only, given.child, given)))
        return 0
    compare(given.names or list(NETWORKS), given)
    return 0


def compare(names: list[str], given: argparse.Namespace) -> None:
    """Run all networks, and print a table for each way."""
    from common import console, machine_line, table

    out = console()
    columns = ["import torch", "imports", "ready", *PARTS, "other", "call"]
    for way in given.ways:
        shown = table(f"{way}, seconds (processor time), batch {given.batch}, {given.threads} thread(s)", ["network", "process"], columns)
        for name in names:
            turns = {"first": child(name, way, given), "second": child(name, way, given)}
            for turn, parts in turns.items():
                if turn == "second" or given.first:
                    cells = ["-" if one not in parts else f"{parts[one][0]:.2f} ({parts[one][1]:.2f})" for one in columns]
                    shown.add_row(name, turn, *cells)
        out.print(shown)
    out.print(machine_line())


if __name__ == "__main__":
    sys.exit(main())
