"""How long a network takes to be ready in a process after the first: `ansor.compile` and `torch.compile(backend="ansor")`, nothing tuned, with their parts.

    python benchmarks/ready.py                          # 15 networks
    python benchmarks/ready.py resnet18 bert --threads 2
    python benchmarks/ready.py resnet18 --profile       # functions by their own time, instead

Each row is a process of its own, after one that did the same; both use a cache folder that is kept (`--cache`). Seconds are wall time, with those of all
processors in brackets. `import torch` and `imports` (what else is imported, most of it of PyTorch) are not part of `ready`; the parts of `ready` are.
`ready` of torch.compile is its first call, which PyTorch traces; `call` is a second one.
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
"""The functions whose own time, without that of others here, is a part's."""

Seconds = tuple[float, float]


class Clock:
    """Wall time and processor time of parts, each without the parts inside it."""

    def __init__(self) -> None:
        self.parts: dict[str, Seconds] = {}
        self._inside: list[Seconds] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds what happens to the part."""
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
        """Counts each call of a function."""
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
    """A module, or a class in one, that was imported."""
    if path in sys.modules:
        return sys.modules[path]
    module, _, name = path.rpartition(".")
    return getattr(sys.modules[module], name)


def measured(name: str, way: str, given: argparse.Namespace) -> dict[str, Seconds]:
    """The parts of one network in this process."""
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
    """The parts in a process of its own."""
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
    options.add_argument("--batch", type=int, default=1, help="(default: %(default)s)")
    options.add_argument("--threads", type=int, default=1, help="of kernels and of PyTorch (default: %(default)s)")
    options.add_argument("--cache", type=Path, default=Path("build") / "ready", help="(default: %(default)s)")
    options.add_argument("--first", action="store_true", help="show the first process, too")
    options.add_argument("--profile", action="store_true", help="show the functions of the second process")
    options.add_argument("--lines", type=int, default=40, help="of each profile (default: %(default)s)")
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
    """Run all, and show them."""
    from common import console, machine_line, table

    out = console()
    columns = ["import torch", "imports", "ready", *PARTS, "other", "call"]
    for way in given.ways:
        shown = table(f"{way}, seconds (of processors), batch {given.batch}, {given.threads} thread(s)", ["network", "process"], columns)
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
