"""Does a new version pick programs as good as an old one's, by their model's own score, and in how much processor time?

    python benchmarks/pick_scores.py ../before                           # operators and networks of NETWORKS; about 5 minutes for each seed
    python benchmarks/pick_scores.py ../before --every 6 --seeds 0 1     # every sixth task; the score of a task is a mean over seeds

Each version has its own environment, see `two_versions.py`. `score`: speed by the model of a version that its pick is predicted to have, new relative to old
(geometric mean, least, and how many tasks have less than 0.97). Two seeds of one version differ by up to a tenth, so a change that draws other random numbers
needs several. It says nothing about real times. Tasks alternate between batches of 1 and 8, one and two threads, and AVX-512 and AVX2.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import geomean, parser
from two_versions import ONE_THREAD, Version

TARGETS = ("cpu -threads=1", "cpu -mcpu=znver3 -threads=1", "cpu -threads=2", "cpu -mcpu=znver3 -threads=2")
NETWORKS = ("resnet18", "mobilenet_v2", "efficientnet_b0", "bert", "regnet")
Scores = dict[str, tuple[float, float]]
"""Task -> logarithm of the score, seconds of processor time."""


def declared() -> Iterator[tuple[str, str, bytes]]:
    """Name, target and pickled tensors of each task."""
    from network_models import NETWORKS as KNOWN
    from suite import ROWS

    from ansor.graph.tasks import extract

    for k, row in enumerate(ROWS):
        yield row.name, TARGETS[k % 4], pickle.dumps(row.operator().declare())
    for name in NETWORKS:
        for batch in (1, 8):
            network = KNOWN[name]
            for k, task in enumerate(extract(network.model(), network.inputs(batch)).tasks):
                yield f"{name}, batch {batch}: {task.name}", TARGETS[(k + batch // 8) % 4], pickle.dumps(task.tensors)


def picked(tasks: Path, seed: int) -> Scores:
    """The picks of the version whose process runs this, without the cache of picks."""
    import numpy as np

    from ansor.run import kept_picks
    from ansor.run.zero_tuning import log_scores, pick, picking_model
    from ansor.tasks.task import SearchTask

    kept_picks.ENABLED, found = False, {}
    for name, target, tensors in pickle.loads(tasks.read_bytes()):
        task = SearchTask(tensors=pickle.loads(tensors), target=target)
        begin = time.process_time()
        program = pick(task, seed=seed).program
        seconds = time.process_time() - begin
        space = next((one for one in task.spaces if one.sketch is program.sketch), None)
        if space is not None:
            rows = np.array(program.row, np.int64).reshape(1, -1)
            found[name] = float(log_scores(picking_model(task.target), space.features(rows))[0]), seconds
    return found


def scores_of(version: Version, tasks: Path, seeds: Sequence[int]) -> list[Scores]:
    """The picks of a version with each seed."""
    command = [version.python, str(Path(__file__).resolve()), "--picked", str(tasks)]
    return [json.loads(subprocess.run([*command, str(seed)], check=True, stdout=subprocess.PIPE, env={**os.environ, **ONE_THREAD}).stdout) for seed in seeds]


def main() -> int:
    if sys.argv[1:2] == ["--picked"]:
        print(json.dumps(picked(Path(sys.argv[2]), int(sys.argv[3]))))
        return 0
    options = parser(__doc__)
    options.add_argument("before", type=Path, help="checkout of the old version")
    options.add_argument("--after", type=Path, default=Path(__file__).resolve().parents[1], help="checkout of the new version (default: this one)")
    options.add_argument("--python", nargs=2, metavar=("OLD", "NEW"), default=(None, None), help="interpreters (default: .venv/bin/python of each checkout)")
    options.add_argument("--every", type=int, default=1, help="only every so many tasks (default: all)")
    options.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of the picks (default: 0)")
    given = options.parse_args()
    versions = [Version.at(folder.resolve(), python) for folder, python in zip((given.before, given.after), given.python, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        tasks = Path(folder) / "tasks"
        tasks.write_bytes(pickle.dumps(list(declared())[:: given.every]))
        old, new = (scores_of(version, tasks, given.seeds) for version in versions)
    known = [name for name in old[0] if all(name in one for one in (*old, *new))]
    ratio = {name: math.exp(sum(after[name][0] - before[name][0] for before, after in zip(old, new, strict=True)) / len(old)) for name in known}
    worst = sorted(ratio.items(), key=lambda one: one[1])
    before, after = (sum(one[name][1] for one in side for name in known) / len(side) for side in (old, new))
    print(f"{len(ratio)} tasks: score {geomean(list(ratio.values())):.4f}, least {worst[0][1]:.3f}, {sum(one < 0.97 for one in ratio.values())} below 0.97")
    print(f"processor time of all picks: {before:.2f} s, now {after:.2f} s")
    for name, one in worst[:10]:
        print(f"{one:.3f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
