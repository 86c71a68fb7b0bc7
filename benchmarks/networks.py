"""A network beside PyTorch eager: tune, compile, compare outputs, then run both in turns.

    python benchmarks/networks.py                                        # ResNet-18, 400 trials, one thread
    python benchmarks/networks.py --network mobilenet_v2 --trials 0      # no tuning: what the model picks
    python benchmarks/networks.py --network transformers_resnet --kernels --records runs/

Batch 1, 224x224. `error` is the largest difference of an output element, relative to the largest one. `--kernels` times each kernel of the
network alone, with its data where the last call left them; their sum is less than the network takes where caches are small.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import torch
from common import add_target, console, interleaved, machine_line, parser, peak_of, ratio, records_at, short, table, target_of, timed, use_threads
from rich.console import Console

from ansor import api
from ansor.graph.network import CompiledNetwork
from ansor.run.progress import ProgressView
from ansor.run.states import TaskState
from ansor.targets.base import Target
from ansor.zoo.catalogue import NETWORKS

TOLERANCE = 1e-3
AIM = 1.0


def transformers_resnet() -> torch.nn.Module:
    """ResNet-18 as the transformers library writes it, with random weights: code nobody here wrote."""
    from transformers import ResNetConfig, ResNetForImageClassification

    from ansor.zoo.weights import settled

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            shape = ResNetConfig(layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], embedding_size=64)
            self.network = ResNetForImageClassification(shape)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.network(image).logits
            return logits

    return settled(Logits)


MODELS: dict[str, Callable[[], torch.nn.Module]] = {name: network.model for name, network in NETWORKS.items()} | {"transformers_resnet": transformers_resnet}


@dataclass
class Compiled:
    """A compiled network, the tasks that were tuned, and the seconds of it all."""

    network: CompiledNetwork
    states: list[TaskState]
    seconds: float


@dataclass(frozen=True)
class Limits:
    """Of tuning the whole network; None is no limit."""

    trials: int | None
    minutes: float | None


def compiled(name: str, model: torch.nn.Module, image: torch.Tensor, target: Target, budget: Limits, folder: str | None, seed: int, out: Console) -> Compiled:
    """Tuned within the budget and built."""
    states: list[TaskState] = []
    start = time.perf_counter()
    network = api.compile(
        model, (image,), str(target), trials=budget.trials, minutes=budget.minutes, min_gain=0.0, records=records_at(folder, name), seed=seed,
        progress=ProgressView(out), on_tasks=states.extend,
    )  # fmt: skip
    return Compiled(network, states, time.perf_counter() - start)


def relative_error(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Largest difference over the largest element."""
    return float((ours - theirs).abs().max() / theirs.abs().max())


def show_kernels(done: Compiled, target: Target, peak: float, out: Console) -> None:
    """One row for each task: uses, seconds alone in the network, rate."""
    seconds: dict[str, float] = defaultdict(float)
    uses: dict[str, int] = defaultdict(int)
    for name, step in done.network.steps:
        step()
        seconds[name] += statistics.median(timed(step) for _ in range(15))
        uses[name] += 1
    states = {state.task.name: state for state in done.states}
    total = sum(seconds.values())
    shown = table(f"kernels of the network, {short(total)} together", ["kernel"], ["uses", "all uses", "share", "GFLOP/s", "% of peak", "tuned to", "trials"])
    for name in sorted(seconds, key=lambda one: -seconds[one]):
        state = states.get(name)
        gflops = state.task.flop * uses[name] / seconds[name] / 1e9 if state else None
        shown.add_row(
            name, str(uses[name]), short(seconds[name]), f"{100 * seconds[name] / total:.1f} %",
            f"{gflops:.0f}" if gflops else "-", f"{100 * gflops / peak:.0f}" if gflops else "-",
            short(state.seconds) if state and state.seconds else "-", str(state.trials) if state else "-",
        )  # fmt: skip
    out.print(shown)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--network", choices=MODELS, default="resnet18", help="(default: %(default)s)")
    options.add_argument("--trials", type=int, help="programs measured for the whole network (default without --minutes: 400)")
    options.add_argument("--minutes", type=float, help="wall time of tuning, to the end: also where little is expected of the rest")
    options.add_argument("--turns", type=int, default=60, help="turns of the comparison (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="of the search (default: %(default)s)")
    options.add_argument("--records", metavar="FOLDER", help="continue from and append to a record file in this folder")
    options.add_argument("--kernels", action="store_true", help="a row for each kernel")
    add_target(options)
    given = options.parse_args()
    out, target = console(), target_of(given)
    use_threads(target.threads)
    model = MODELS[given.network]()
    image = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    limits = Limits(400 if given.trials is None and given.minutes is None else given.trials, given.minutes)
    done = compiled(given.network, model, image, target, limits, given.records, given.seed, out)
    with torch.no_grad():
        error = relative_error(done.network(image), model(image))  # type: ignore[arg-type]  # one tensor, as the module gives one
        times = interleaved({"ours": lambda: done.network(image), "theirs": lambda: model(image)}, given.turns)
    found = ratio(times["ours"], times["theirs"])
    peak = peak_of(target).gflops
    if given.kernels:
        show_kernels(done, target, peak, out)
    shown = table(
        f"batch 1, {target.threads} thread(s), medians of {given.turns} turns; peak {peak:.0f} GFLOP/s", ["network"],
        ["trials", "tuned and built in", "ours", "torch eager", "torch / ours (middle 80 %)", "error", "aim"],
    )  # fmt: skip
    equal, fast = error <= TOLERANCE, found.median >= AIM
    trials = sum(state.trials for state in done.states)
    shown.add_row(
        given.network, str(trials), short(done.seconds), short(times["ours"].median), short(times["theirs"].median), str(found),
        f"{error:.1e} {'equal' if equal else 'DIFFERENT'}", f"{AIM} {'met' if fast else 'MISSED'}",
    )  # fmt: skip
    out.print(shown)
    out.print(f"torch / ours above 1: ours is faster. {machine_line()}, torch {torch.__version__}")
    return int(not (equal and fast))


if __name__ == "__main__":
    sys.exit(main())
