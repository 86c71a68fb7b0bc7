"""What workers answer, and what is wrong with an answer: any process may have joined a farm, of any version."""

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
"""What an answer must have."""

NAMED: Fields = {"device": str, "process": int, "identity": str}
DESCRIBED: Fields = {**NAMED, "model": str, "processor": str, "unit": str, "form": str}
JUDGED: Fields = {**NAMED, "judged": dict}
WATCHED: Fields = {**JUDGED, "canary": float}
MEASURED: Fields = {**DESCRIBED, **WATCHED, "measured_by": str, "shift": int}


@dataclass(frozen=True, slots=True)
class Model:
    """What devices of a key are: costs of one key are of one kind. processor: of machines that are devices themselves; else ''."""

    model: str
    unit: str
    form: str
    processor: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.model, self.processor, self.unit)))


def model_of(said: Said) -> Model:
    """Of the device that answered."""
    return Model(said["model"], said["unit"], said["form"], said["processor"])


def name_of(said: Said) -> str:
    """A device, and the process that has it."""
    return f"{said['device']} ({said['process']})"


def read_answer(answer: object) -> tuple[dict[str, Any], str]:
    """The answer to a job, and the address of the worker, '' if it is not known. Raises DeviceError for what is none."""
    if not isinstance(answer, dict) or not _are_texts(answer.get("missing", [])):
        raise DeviceError(f"a worker of the farm answered {answer!r:.100}; install the same version of ansor on all machines")
    return answer, str(answer.get("worker", ""))


def check_measured(said: Said, text: str) -> None:
    """Raises DeviceError for an answer to a job on devices `text` that is of other versions, an error, or not complete."""
    check_versions(said, text)
    if "error" in said:
        raise DeviceError(f"{text}: {clip(str(said['error']), 1000)}")
    if missing := lacking(said, JUDGED if "refused" in said else MEASURED):
        raise DeviceError(f"a worker of {text} answered without its {missing}; install the same version of ansor on all machines")


def check_versions(said: Said, text: str) -> None:
    """Raises DeviceError for an answer of other versions than ours."""
    wrong = difference(said)
    if wrong:
        raise DeviceError(f"asked to measure on {text}: the worker of {said.get('device')} has {wrong}")


def lacking(said: Said, wanted: Fields) -> str:
    """What an answer does not have, or has of another type; '' for nothing."""
    wrong = [name for name, kind in wanted.items() if not isinstance(said.get(name), kind) or isinstance(said.get(name), bool)]
    if "judged" in wanted and "judged" not in wrong and not _are_verdicts(said["judged"]):
        wrong.append("judged")
    return " and ".join(wrong)


def stranger(worker: str, said: str) -> Said:
    """Stands for the answer of a worker that has not answered as ours do."""
    return {"device": f"the worker at {worker}", "error": f"it does not answer as version {__version__} of ansor does ({clip(said, 200)})"}


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _are_verdicts(value: Mapping[Any, Any]) -> bool:
    """Whether these are shifts, and whether their results count."""
    return all(type(shift) is int and isinstance(counts, bool) for shift, counts in value.items())
