"""Creates the modules of `tvm.auto_scheduler`, `tvm.autotvm` and `tvm.topi` under TVM's paths, such as `tvm.autotvm.task.space`.

Each has the names of our modules listed here, then those of its package. Importing `ansor.compat.tvm` creates them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType

from ansor.compat.tvm import auto_scheduler, autotvm, missing, nd, runtime, target, te, testing, tir, topi, transform

HERE = "ansor.compat.tvm."

AUTO_SCHEDULER: Mapping[str, tuple[str, ...]] = {
    "auto_schedule": ("deprecated",), "compute_dag": ("compute_dag", "measured"), "cost_model": ("cost_models",), "cost_model.cost_model": ("cost_models",),
    "cost_model.xgb_model": ("cost_models",), "dispatcher": ("dispatcher",), "loop_state": ("loop_state", "stages"), "measure": ("measuring", "measured"),
    "measure_record": ("record", "log_line"), "search_policy": ("search_policy",), "search_task": ("search_task", "measured", "task_inputs"),
    "task_scheduler": ("task_scheduler",), "workload_registry": ("workload_registry",),
}  # fmt: skip
"""Module of `tvm.auto_scheduler` -> modules of `ansor.compat.auto_scheduler`."""

AUTOTVM: Mapping[str, tuple[str, ...]] = {
    "database": ("database",), "feature": ("feature",), "measure": ("measure", "measured"), "measure.measure": ("measure", "measured"),
    "measure.measure_methods": ("measure", "local_measure"), "measure.local_executor": ("local_measure",),
    "measure.executor": ("compat.tvm.autotvm.executor",), "record": ("record", "log_line"),
    "task": ("templates.task", "templates.template", "templates.dispatch"),
    "task.space": (
        "templates.space", "templates.knob", "templates.split", "templates.reorder", "templates.annotate", "templates.entities", "templates.fallback",
    ),
    "task.task": ("templates.task", "templates.template"), "task.dispatcher": ("templates.dispatch", "recorded_dispatch"), "task.code_hash": (),
    "task.topi_integration": ("templates.template",),
    "tuner": ("tuner",), "tuner.tuner": ("tuner",), "tuner.callback": ("callback",), "tuner.ga_tuner": ("ga_tuner",),
    "tuner.index_based_tuner": ("index_tuners",),
    "tuner.model_based_tuner": ("model_based_tuner",), "tuner.sa_model_optimizer": ("sa_model_optimizer",), "tuner.xgboost_cost_model": ("xgboost_cost_model",),
    "tuner.xgboost_tuner": ("xgboost_tuner",), "graph_tuner": ("graph_tuner",),
}  # fmt: skip
"""Module of `tvm.autotvm` -> modules of `ansor.compat.autotvm`; names with a dot are modules of `ansor`."""

DEVICES = ("cuda", "gpu", "rocm", "arm_cpu", "mali", "bifrost", "intel_graphics", "hls", "hexagon", "adreno")
TOPI: Mapping[str, tuple[str, ...]] = {
    "nn.pooling": ("nn",), "nn.winograd_util": ("winograd",), **dict.fromkeys(DEVICES, ("other_devices",)),
    **dict.fromkeys(("broadcast", "elementwise", "reduction", "tensor"), ("transform",)),
}  # fmt: skip
"""Module of `tvm.topi` -> modules of `ansor.compat.tvm.topi`."""

FLAT = (nd, runtime, target, te, testing, tir, topi.generic, topi.tag, topi.transform, topi.utils, topi.x86, transform)
"""Modules without further submodules: importing one of theirs raises an error with a message from `missing`."""


def _module(name: str, sources: tuple[str, ...], package: ModuleType) -> ModuleType:
    """A module under TVM's name. It looks names up in `sources`, then in `package`."""
    made = ModuleType(HERE + name, f"`tvm.{name}`: the names of {', '.join(sources)}.")

    def __getattr__(wanted: str) -> object:
        if wanted == "__all__":
            return _listed([*map(import_module, sources)], package)
        for place in () if wanted.startswith("__") else (*map(import_module, sources), package):
            if wanted in (*vars(place), *getattr(place, "__all__", ())) or place is not package and hasattr(place, wanted):
                return getattr(place, wanted)
        raise missing.missing(f"tvm.{name}", wanted)

    get: Callable[[str], object] = __getattr__
    vars(made).update(__path__=[], __getattr__=get)
    return made


def _listed(sources: Iterable[ModuleType], package: ModuleType) -> list[str]:
    """The names for `import *`: those of the sources and of the package. Names in an `__all__` may exist only once they are asked for."""
    return list(dict.fromkeys(name for place in (*sources, package) for name in getattr(place, "__all__", None) or _defined(place)))


def _defined(place: ModuleType) -> list[str]:
    """The public names of a module, without the modules and the names of other packages that it imports."""
    ours = {name: value for name, value in vars(place).items() if not name.startswith("_") and not isinstance(value, ModuleType)}
    return [name for name, value in ours.items() if str(getattr(value, "__module__", "ansor")).startswith("ansor")]


def _put(package: ModuleType, ours: str, modules: Mapping[str, tuple[str, ...]]) -> None:
    root = package.__name__.removeprefix(HERE)
    for path, sources in modules.items():
        made = _module(f"{root}.{path}", tuple(f"ansor.{source}" if "." in source else f"{ours}.{source}" for source in sources), package)
        parent, _, name = made.__name__.rpartition(".")
        sys.modules[made.__name__] = made
        setattr(sys.modules[parent], name, made)


def put() -> None:
    """Create the modules."""
    sys.modules[f"{HERE}runtime.ndarray"] = nd
    vars(runtime)["ndarray"] = nd
    for module in FLAT:
        vars(module)["__path__"] = []
    _put(auto_scheduler, "ansor.compat.auto_scheduler", AUTO_SCHEDULER)
    _put(autotvm, "ansor.compat.autotvm", AUTOTVM)
    _put(topi, "ansor.compat.tvm.topi", TOPI)


put()
