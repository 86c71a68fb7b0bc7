"""Parts of TVM that do not exist here, and what to use instead, as messages of AttributeErrors: `hasattr` is False for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

from ansor.compat.common.not_here import MissingModuleError as MissingModuleError
from ansor.compat.common.not_here import MissingNameError as MissingNameError

PACKAGE = "ansor.compat."


_GPU = "only CPUs are supported: use tvm.cpu() and the target 'llvm'"
_TIR = "a scheduled program is plain loops: print tvm.lower(s, args); in declarations use te.if_then_else, te.all, te.any, te.const, te.min_value"
_NETWORK = "networks come from PyTorch: ansor.compile(model, example_inputs), or auto_scheduler.extract_tasks(model, example_inputs) for their tasks"
_REMOTE = "programs are measured on this machine, each in its own process: tune on the machine that will run them"
_SHAPES = "shapes are Python integers: write a function that makes a declaration for each size"
_KINDS = "there are two kinds of tensors: tensor.is_placeholder tells them apart"
_LIBRARY = "a program cannot contain a library's kernel: write its computation with te.compute"
_CONTRIB = "tvm.contrib has cc, nvcc, pickle_memoize and utils"
_OPERATOR = "operators are functions on tensors: write it with te.compute, or see ansor.te.nn for the existing ones"
_SPARSE = "reductions have fixed extents: use te.compute over rows padded to one length, or over dense operands"
_ORDER = "kernels do not sort: sort with NumPy or PyTorch before or after the kernel; topi.argmax and topi.argmin find one position"
_SCATTER = "a kernel writes each element once: topi.sparse_to_dense keeps the last entry of a position; te.sum(value, axis=entry, where=place == i) adds them"
_BITS = "bits cannot be reinterpreted: use te.cast for values, or NumPy's array.view(dtype) outside the kernel"
_PASSES = "there are no passes to configure: leave it out"
_THREADS = "processors have no grid of threads: use s[C].parallel(outer) and s[C].vectorize(inner)"

TVM = {
    "relay": _NETWORK, "ir": _NETWORK, "IRModule": _NETWORK, "relax": _NETWORK, "parser": _NETWORK, "driver": "use the command `ansor compile`",
    "script": _TIR, "arith": _TIR, "meta_schedule": "use tvm.auto_scheduler, which runs our search", "ir_builder": _TIR,
    "instrument": "there are no passes to configure: leave it out",
    "rpc": _REMOTE, "micro": _REMOTE, "exec": "use the commands of `ansor`", "graph_executor": _NETWORK, "vta": _GPU,
    "gpu": _GPU, "vpi": _GPU, "hexagon": _GPU, "webgpu": _GPU,
    "var": _SHAPES, "size_var": _SHAPES, "thread_axis": _THREADS, "create_schedule": "use te.create_schedule", "compute": "use te.compute",
    "placeholder": "use te.placeholder", "reduce_axis": "use te.reduce_axis", "sum": "use te.sum", "const": "use te.const",
    "get_global_func": "there is no registry of functions: import what you need", "register_func": "there is no registry of functions: call yours directly",
    "hybrid": "write the declaration with te.compute",
}  # fmt: skip
"""Names missing in `tvm`."""

TE = {
    "extern": "a program cannot contain a library's kernel: write its computation with te.compute",
    "extern_primfunc": "write its computation with te.compute",
    "scan": "a stage cannot read itself: write a reduction (topi.cumsum, for running sums), or one te.compute for each step",
    "hybrid": "write the declaration with te.compute",
    "decl_tensor_intrin": "instructions are declared by targets, ansor.targets.x86_intrinsics and ansor.targets.neon, and s[C].tensorize takes their names",
    "tag_scope": "give te.compute its tag=", "gradient": "derivatives come from PyTorch: torch.func.grad",
    "ScanOp": _KINDS, "HybridOp": _KINDS, "ExternOp": _KINDS, "TensorComputeOp": _KINDS,
    "create_prim_func": _TIR, "tensor_intrin": "instructions are declared by targets, ansor.targets.x86_intrinsics and ansor.targets.neon",
    "trace": "print(tvm.lower(s, args)) shows the loops; evaluate a stage by giving it as an output",
}  # fmt: skip
"""Names missing in `tvm.te`."""

AUTO_SCHEDULER = {
    "relay_integration": _NETWORK, "feature": "use ansor.cost_model.features, the features of a state's program",
    "is_auto_scheduler_enabled": "use ansor.compile(model, example_inputs, records=...)",
    "remove_index_check": "indices are proved to be in bounds, so there is no check to remove",
    "rewrite_compute_body": "layouts are rewritten inside the program: list operands in attrs={'layout_free_placeholders': [...]}",
    "rewrite_tensor_shape": "layouts are rewritten inside the program: list operands in attrs={'layout_free_placeholders': [...]}",
    "ApplyHistoryBestOrSample": "use ApplyHistoryBest; without measurements, ansor.compile picks programs by the built-in model",
}  # fmt: skip
"""Names missing in `tvm.auto_scheduler`."""

AUTOTVM = {
    "tophub": "there are no logs to download: tune, or load a log with apply_history_best",
    "extract_from_program": "networks come from PyTorch: auto_scheduler.extract_tasks(model, example_inputs)",
}
"""Names missing in `tvm.autotvm`."""

TARGET = {
    "opencl": _GPU, "vta": _GPU, "hexagon": _GPU,
    "override_native_generic_func": "write your own function for each target",
    "x86": "use tvm.target.Target('llvm')",
}  # fmt: skip
"""Names missing in `tvm.target`."""

CONTRIB = {
    **dict.fromkeys(("graph_executor", "graph_runtime", "debugger"), _NETWORK), **dict.fromkeys(("cblas", "mkl", "mkldnn", "dnnl"), _LIBRARY),
    **dict.fromkeys(("cudnn", "cublas", "rocm", "nvrtc", "hexagon"), _GPU), **dict.fromkeys(("xcode", "ndk"), _REMOTE),
    "download": "download files with urllib.request.urlretrieve(url, path)", "tedd": "print tvm.lower(s, args), or the schedule's loops with ansor.explain",
    "sparse": "sparse operands are three arrays of te.placeholder: data, indices and indptr", "dlpack": "use .numpy() and tvm.nd.array",
}  # fmt: skip
"""Names missing in `tvm.contrib`."""


TOPI = {
    "testing": "it has NumPy references: compute yours with NumPy or PyTorch, such as torch.nn.functional.conv2d", "sparse": _SPARSE, "reinterpret": _BITS,
    **dict.fromkeys(("sort", "argsort", "topk", "unique", "searchsorted"), _ORDER),
    **dict.fromkeys(("scatter", "scatter_nd", "scatter_add"), _SCATTER),
}  # fmt: skip
"""Names missing in `tvm.topi`."""

TABLES: Mapping[str, Mapping[str, str]] = {
    "tvm": TVM, "tvm.te": TE, "tvm.auto_scheduler": AUTO_SCHEDULER, "tvm.autotvm": AUTOTVM, "tvm.target": TARGET,
    "tvm.topi": TOPI, "tvm.topi.nn": {"sparse_dense": _SPARSE}, "tvm.contrib": CONTRIB,
    "tvm.runtime": {"vm": _NETWORK, "executor": _NETWORK, "profiler_vm": _NETWORK, "String": "use str", "convert": "use Python values"},
}  # fmt: skip
"""Module -> names missing in it -> what to use instead."""

OTHERWISE = {"tvm.tir": _TIR, "tvm.transform": _PASSES, "tvm.topi": _OPERATOR, "tvm.contrib": _CONTRIB}
"""Module -> the message for any other name of it."""


def sentence(module: str, name: str) -> str:
    """The message for a name that a module such as `tvm.te` does not have, from the nearest enclosing package with one."""
    parts = f"{module}.{name}".split(".")
    for k in range(len(parts) - 1, 0, -1):
        known = TABLES.get(".".join(parts[:k]), {}).get(parts[k]) or OTHERWISE.get(".".join(parts[:k]))
        if known is not None:
            return f"asked for {module}.{name}, which is not available; {known}"
    return f"asked for {module}.{name}, which is not available; see docs/tvm.md for what is"


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    if name.startswith("__"):
        return AttributeError(f"module '{module}' has no attribute {name!r}")
    return MissingNameError(sentence(module, name))


def _raising(module: str) -> Callable[[str], NoReturn]:
    """A module's `__getattr__`, which raises the AttributeError."""

    def of(name: str) -> NoReturn:
        raise missing(module, name)

    return of


of_tvm, of_te, of_target = _raising("tvm"), _raising("tvm.te"), _raising("tvm.target")
of_topi, of_contrib, of_runtime = _raising("tvm.topi"), _raising("tvm.contrib"), _raising("tvm.runtime")
of_auto_scheduler, of_autotvm = _raising("tvm.auto_scheduler"), _raising("tvm.autotvm")
of_tir, of_transform = _raising("tvm.tir"), _raising("tvm.transform")


class MissingModules(MetaPathFinder):
    """The last finder on the path: raises an ImportError that says what to use instead."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """None for modules outside `tvm`. Raises MissingModuleError for modules in it."""
        if not fullname.startswith(f"{PACKAGE}tvm.") or fullname.rpartition(".")[2].startswith("__"):
            return None
        module, _, name = fullname.removeprefix(PACKAGE).rpartition(".")
        raise MissingModuleError(sentence(module, name))


sys.meta_path.append(MissingModules())
