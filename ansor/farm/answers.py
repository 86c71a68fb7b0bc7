"""The answers of workers, and checks on them: any process, of any version, may have joined a farm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansor import __version__
from ansor.errors import DeviceError
from ansor.farm.versions import difference
from ansor.support.text import clip

Said = Mapping[str, Any]

Fields = Mapping[str, type[object]]
"""The fields that an answer must have, and their types."""

NAMED: Fields = {"device": str, "process": int, "identity": str}
DESCRIBED: Fields = {**NAMED, "model": str, "processor": str, "unit": str, "form": str}
JUDGED: Fields = {**NAMED, "judged": dict}
WATCHED: Fields = {**JUDGED, "canary": float}
MEASURED: Fields = {**DESCRIBED, **WATCHED, "measured_by": str, "shift": int}


@dataclass(frozen=True, slots=True)
class Model:
    """What kind of device a key stands for. All devices with a key are of one kind, so their costs are comparable. processor: if the machine itself is the
    device; else ''."""

    model: str
    unit: str
    form: str
    processor: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.model, self.processor, self.unit)))


def model_of(said: Said) -> Model:
    """The model of the device that answered."""
    return Model(said["model"], said["unit"], said["form"], said["processor"])


def name_of(said: Said) -> str:
    """The name of a device, and the number of the process that owns it."""
    return f"{said['device']} ({said['process']})"


def read_answer(answer: object) -> tuple[dict[str, Any], str]:
    """The answer to a job, and the worker's address, '' if unknown. Raises DeviceError if this is not an answer."""
    if not isinstance(answer, dict) or not _are_texts(answer.get("missing", [])):
        raise DeviceError(f"a worker of the farm answered {answer!r:.100}; install the same version of ansor on all machines")
    return answer, str(answer.get("worker", ""))


def check_measured(said: Said, text: str) -> None:
    """Raise DeviceError if an answer to a job on devices `text` comes from another version, reports an error, or is incomplete."""
    check_versions(said, text)
    if "error" in said:
        raise DeviceError(f"{text}: {clip(str(said['error']), 1000)}")
    if missing := lacking(said, JUDGED if "refused" in said else MEASURED):
        raise DeviceError(f"a worker of {text} answered without its {missing}; install the same version of ansor on all machines")


def check_versions(said: Said, text: str) -> None:
    """Raise DeviceError if an answer comes from versions other than ours."""
    wrong = difference(said)
    if wrong:
        raise DeviceError(f"asked to measure on {text}: the worker of {said.get('device')} has {wrong}")


def lacking(said: Said, wanted: Fields) -> str:
    """The fields that an answer lacks, or has with another type, joined by "and"; '' if there are none."""
    wrong = [name for name, kind in wanted.items() if not isinstance(said.get(name), kind) or isinstance(said.get(name), bool)]
    if "judged" in wanted and "judged" not in wrong and not _are_verdicts(said["judged"]):
        wrong.append("judged")
    return " and ".join(wrong)


def stranger(worker: str, said: str) -> Said:
    """A stand-in for the answer of a worker that does not answer as ours do."""
    return {"device": f"the worker at {worker}", "error": f"it does not answer as version {__version__} of ansor does ({clip(said, 200)})"}


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _are_verdicts(value: Mapping[Any, Any]) -> bool:
    """Whether this maps the numbers of shifts to truth values."""
    return all(type(shift) is int and isinstance(counts, bool) for shift, counts in value.items())
