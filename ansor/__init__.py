"""ansor: write what to compute, and let a search find how.

    kernel = ansor.auto_schedule(matmul, args=(512, 512, 512), target="cpu", trials=128)
    net = ansor.compile(model, example_inputs, trials=400)

Names are imported when first used, so that `import ansor` costs next to nothing.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ansor.support.garbage import uncollected
from ansor.support.loaded import torch_needed

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ansor import te as te
    from ansor.any_size import compile_batches as compile_batches
    from ansor.any_size import compile_lengths as compile_lengths
    from ansor.api import RecordToFile as RecordToFile
    from ansor.api import SketchPolicy as SketchPolicy
    from ansor.api import TuningOptions as TuningOptions
    from ansor.api import auto_schedule as auto_schedule
    from ansor.api import compile as compile
    from ansor.api import compile_int8 as compile_int8
    from ansor.api import create_pack as create_pack
    from ansor.api import export as export
    from ansor.api import extract_tasks as extract_tasks
    from ansor.api import import_pack as import_pack
    from ansor.api import tune_tasks as tune_tasks
    from ansor.errors import AnsorError as AnsorError
    from ansor.errors import AnsorWarning as AnsorWarning
    from ansor.graph.network import CompiledNetwork as CompiledNetwork
    from ansor.integer.extracting import extract_int8_tasks as extract_int8_tasks
    from ansor.manual.program import build as build
    from ansor.manual.program import lower as lower
    from ansor.manual.schedule import create_schedule as create_schedule
    from ansor.measure.kernel import Kernel as Kernel
    from ansor.measure.pack import load_pack as load_pack
    from ansor.measure.record import load as load_records
    from ansor.measure.timing import TimingOptions as TimingOptions
    from ansor.networks.batches import BatchedNetwork as BatchedNetwork
    from ansor.networks.lengths import AnyLengthNetwork as AnyLengthNetwork
    from ansor.networks.loaded_network import LoadedNetwork as LoadedNetwork
    from ansor.networks.loaded_sizes import LoadedSizes as LoadedSizes
    from ansor.networks.loading import load as load
    from ansor.run.program import Program as Program
    from ansor.run.states import Progress as Progress
    from ansor.run.states import TaskState as TaskState
    from ansor.tasks.pins import Pin as Pin
    from ansor.tasks.task import SearchTask as SearchTask
    from ansor.tasks.workloads import register_workload as register_workload

_PLACES = {
    "AnyLengthNetwork": "ansor.networks.lengths", "BatchedNetwork": "ansor.networks.batches",
    "te": "ansor.te", "AnsorError": "ansor.errors", "AnsorWarning": "ansor.errors", "CompiledNetwork": "ansor.graph.network",
    "Kernel": "ansor.measure.kernel", "Pin": "ansor.tasks.pins", "Program": "ansor.run.program", "Progress": "ansor.run.states",
    "LoadedNetwork": "ansor.networks.loaded_network", "RecordToFile": "ansor.api", "SearchTask": "ansor.tasks.task",
    "SketchPolicy": "ansor.api", "TaskState": "ansor.run.states", "TimingOptions": "ansor.measure.timing", "TuningOptions": "ansor.api",
    "auto_schedule": "ansor.api", "build": "ansor.manual.program", "compile": "ansor.api",
    "compile_batches": "ansor.any_size", "compile_int8": "ansor.api", "compile_lengths": "ansor.any_size", "create_schedule": "ansor.manual.schedule",
    "LoadedSizes": "ansor.networks.loaded_sizes", "load": "ansor.networks.loading",
    "export": "ansor.api", "extract_int8_tasks": "ansor.integer.extracting",
    "extract_tasks": "ansor.api", "load_records": "ansor.measure.record:load", "lower": "ansor.manual.program", "register_workload": "ansor.tasks.workloads",
    "create_pack": "ansor.api", "import_pack": "ansor.api", "load_pack": "ansor.measure.pack", "tune_tasks": "ansor.api",
}

__all__ = ["AnsorError", "AnsorWarning", "AnyLengthNetwork", "BatchedNetwork", "CompiledNetwork", "Kernel", "LoadedNetwork", "LoadedSizes", "Pin",
           "Program", "Progress", "RecordToFile", "SearchTask", "SketchPolicy", "TaskState", "TimingOptions", "TuningOptions", "auto_schedule", "build",
           "compile", "compile_batches", "compile_int8", "compile_lengths", "create_pack", "create_schedule", "export", "extract_int8_tasks",
           "extract_tasks", "import_pack", "load", "load_pack", "load_records", "lower", "register_workload", "te", "tune_tasks"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'ansor' has no attribute {name!r}{_hint(name)}; it offers {', '.join(__all__)}")
    place, _, attribute = _PLACES[name].partition(":")
    with uncollected(), torch_needed(f"ansor.{name}"):
        module = import_module(place)
    value: object = module if name == "te" else getattr(module, attribute or name)
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    """What to write instead of a name that the package does not have; '' if nothing is similar."""
    if name.startswith("_") or not name.isidentifier():
        return ""
    if find_spec(f"ansor.{name}") is not None:
        return f", but there is a module of that name: write `import ansor.{name}`, or `from ansor.{name} import ...`"
    from ansor.support.text import did_you_mean

    return did_you_mean(name, __all__)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
