"""ansor: write what to compute, and let a search find how.

    kernel = ansor.auto_schedule(matmul, args=(512, 512, 512), target="cpu", trials=128)
    net = ansor.compile(model, example_inputs, trials=400)

Names are imported when first used, so that `import ansor` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ansor import te as te
    from ansor.api import RecordToFile as RecordToFile
    from ansor.api import SketchPolicy as SketchPolicy
    from ansor.api import TuningOptions as TuningOptions
    from ansor.api import auto_schedule as auto_schedule
    from ansor.api import compile as compile
    from ansor.api import extract_tasks as extract_tasks
    from ansor.api import tune_tasks as tune_tasks
    from ansor.errors import AnsorError as AnsorError
    from ansor.manual.program import build as build
    from ansor.manual.program import lower as lower
    from ansor.manual.schedule import create_schedule as create_schedule
    from ansor.pins import Pin as Pin
    from ansor.task import SearchTask as SearchTask
    from ansor.task import register_workload as register_workload

_PLACES = {
    "te": "ansor.te", "auto_schedule": "ansor.api", "compile": "ansor.api", "extract_tasks": "ansor.api", "tune_tasks": "ansor.api",
    "TuningOptions": "ansor.api", "RecordToFile": "ansor.api", "SketchPolicy": "ansor.api", "SearchTask": "ansor.task",
    "register_workload": "ansor.task", "AnsorError": "ansor.errors", "create_schedule": "ansor.manual.schedule", "lower": "ansor.manual.program",
    "build": "ansor.manual.program", "Pin": "ansor.pins",
}

__all__ = ["AnsorError", "Pin", "RecordToFile", "SearchTask", "SketchPolicy", "TuningOptions", "auto_schedule", "build", "compile", "create_schedule",
           "extract_tasks", "lower", "register_workload", "te", "tune_tasks"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'ansor' has no attribute {name!r}; it offers {', '.join(__all__)}")
    module = import_module(_PLACES[name])
    value: object = module if name == "te" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
