"""Jobs and their outcomes as JSON and files named by their digest: the data exchanged between a client and a station. Nothing is pickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ansor.codegen.artifact import Artifact
from ansor.codegen.source import Argument, CSource
from ansor.errors import DeviceError
from ansor.measure.device import Job, Observation
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import Stopping, TimingOptions
from ansor.support.json_values import is_number
from ansor.targets.unit import Unit

VERSION = 2
"""The version of this format. Both sides need the same one; otherwise they report the difference."""

Find = Callable[[str], Path]
"""Finds the file with a digest on this machine."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A job for another machine. text: JSON that names files by their digest; files: their paths on this machine."""

    text: str
    files: Mapping[str, Path]


def pack_job(job: Job) -> Packed:
    """Write a job as JSON, with the files that it needs."""
    files: dict[str, Path] = {}
    values = {name: _note(Path(path), files) for name, path in job.task.files}
    data = {
        "task": asdict(replace(job.task, reference=None, files=())) | {"files": values, "reference": _source_data(job.task.reference)},
        "artifact": _artifact_data(job.artifact, files),
        "reference": None if job.reference is None else _artifact_data(job.reference, files),
        "timing": asdict(job.timing),
        "best": job.best,
    }
    return Packed(json.dumps(data), files)


def unpack_job(text: str, find: Find) -> Job:
    """The job that `pack_job` wrote, with this machine's files. Raises DeviceError for any other text."""
    try:
        data = json.loads(text)
        given = dict(data["task"])
        given["files"] = tuple((name, str(find(digest))) for name, digest in given["files"].items())
        given["ranges"] = tuple((name, low, high) for name, low, high in given["ranges"])
        given["reference"] = _source(given["reference"])
        timing = dict(data["timing"])
        timing["stopping"] = Stopping(**timing["stopping"])
        reference = None if data["reference"] is None else _artifact(data["reference"], find)
        return Job(MeasureTask(**given), _artifact(data["artifact"], find), reference, TimingOptions(**timing), data["best"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DeviceError(f"received a job that cannot be read ({type(error).__name__}: {error}); use the same version of ansor on both sides") from error


def digests_of(text: str) -> tuple[str, ...]:
    """The digests of the files that a job names."""
    data = json.loads(text)
    built = [one["file"] for one in (data["artifact"], data["reference"]) if one is not None]
    return tuple(dict.fromkeys([*built, *data["task"]["files"].values()]))


def outcome_data(outcome: Observation | Failure) -> dict[str, Any]:
    """A device's answer, as JSON."""
    if isinstance(outcome, Failure):
        return {"failure": [outcome.kind, outcome.text]}
    return {
        "costs": outcome.costs, "unit": outcome.unit.to_text(), "cut_short": outcome.cut_short, "check": outcome.check, "counters": dict(outcome.counters),
    }  # fmt: skip


def outcome_of(data: Any) -> Observation | Failure:
    """The answer that `outcome_data` wrote. Raises DeviceError for anything else."""
    try:
        if "failure" in data:
            kind, text = data["failure"]
            return Failure(str(kind), str(text))
        costs = tuple(map(_number, data["costs"]))
        if not costs or min(costs) <= 0:
            raise ValueError(f"the costs {costs!r:.100} instead of one or more numbers above 0")
        counters = {str(name): _number(value) for name, value in data["counters"].items()}
        return Observation(costs, Unit.from_text(data["unit"]), bool(data["cut_short"]), str(data["check"]), counters)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DeviceError(f"received an answer that cannot be read ({type(error).__name__}: {error}); use the same version of ansor on both sides") from error


def _number(value: object) -> float:
    if not is_number(value):
        raise ValueError(f"{value!r:.100} instead of a number")
    return float(value)


def digest_of(content: bytes) -> str:
    """The name of a file with this content."""
    return hashlib.sha256(content).hexdigest()


def _note(path: Path, files: dict[str, Path]) -> str:
    digest = digest_of(path.read_bytes())
    files[digest] = path
    return digest


def _artifact_data(one: Artifact, files: dict[str, Path]) -> dict[str, Any]:
    return {"source": _source_data(one.source), "file": _note(one.path, files), "symbol": one.symbol, "form": one.form, "digest": one.digest}


def _artifact(data: Mapping[str, Any], find: Find) -> Artifact:
    source = _source(data["source"])
    if source is None:
        raise ValueError("a program without its source")
    return Artifact(source, find(data["file"]), data["symbol"], data["form"], data["digest"])


def _source_data(one: CSource | None) -> dict[str, Any] | None:
    if one is None:
        return None
    arguments = [argument.to_data() for argument in one.arguments]
    return {
        "text": one.text, "entry": one.entry, "arguments": arguments, "workspace_bytes": one.workspace_bytes, "threads": one.threads,
        "tolerance": one.tolerance, "plain": _source_data(one.plain),
    }  # fmt: skip


def _source(data: Mapping[str, Any] | None) -> CSource | None:
    if data is None:
        return None
    arguments = tuple(Argument.from_data(argument) for argument in data["arguments"])
    return CSource(data["text"], data["entry"], arguments, data["workspace_bytes"], data["threads"], data["tolerance"], plain=_source(data["plain"]))
