"""Other runtimes for a model: PyTorch eager, PyTorch Inductor, ONNX Runtime. Each becomes a call without arguments, or a sentence that says why there is none.

They run on the number of threads given to `torch.set_num_threads`, and under the caller's `torch.no_grad()`.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansor.support.silence import silence
from ansor.support.text import first_line

if TYPE_CHECKING:
    import torch

Call = Callable[[], object]
LONGEST_REASON = 160


@dataclass(frozen=True)
class ModelCall:
    """A model and the arguments of a call. file: the model's ONNX file; None for a PyTorch module."""

    model: Callable[..., object]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None

    def __call__(self) -> object:
        return self.model(*self.args, **self.kwargs)


def eager(call: ModelCall) -> Call:
    """A call of the model as it is."""
    return call


def inductor(call: ModelCall) -> Call:
    """`torch.compile` with weights frozen as constants, for inference; compiles immediately. For an ONNX file it gets the same program as we do."""
    import torch

    model = call.model
    if call.file is not None and isinstance(model, torch.nn.Module):
        model = torch.export.export(model, call.args, dict(call.kwargs), strict=False).module()
    compiled = torch.compile(model, options={"freezing": True})
    with warnings.catch_warnings(), redirect_stderr(StringIO()):  # it prints everything that it tries; errors are raised
        warnings.simplefilter("ignore")
        compiled(*call.args, **call.kwargs)
    return lambda: compiled(*call.args, **call.kwargs)


def onnxruntime(call: ModelCall) -> Call:
    """A session of the ONNX file, or of the model as PyTorch exports it. Inputs and outputs are bound; idle threads leave the cores to the next runtime."""
    import onnxruntime as ort
    import torch

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = torch.get_num_threads(), 1, 3
    options.add_session_config_entry("session.force_spinning_stop", "1")
    with tempfile.TemporaryDirectory() as folder:
        path = call.file or _exported(call, Path(folder) / "model.onnx")
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for one, value in zip(session.get_inputs(), _given(call, [one.name for one in session.get_inputs()]), strict=True):
        binding.bind_ortvalue_input(one.name, ort.OrtValue.ortvalue_from_numpy(value.numpy()))
    for one in session.get_outputs():
        binding.bind_output(one.name, "cpu")

    def run() -> None:
        session.run_with_iobinding(binding)

    run()
    return run


def _given(call: ModelCall, names: Sequence[str]) -> list[torch.Tensor]:
    """The tensors that a session takes, in its order: by name if the call names them, the others in the order of the call."""
    import torch
    from torch.utils import _pytree as pytree

    named = {name: value for name, value in call.kwargs.items() if name in names}
    rest = iter([one for one in pytree.tree_leaves((call.args, {name: value for name, value in call.kwargs.items() if name not in named}))
                 if isinstance(one, torch.Tensor)])  # fmt: skip
    return [(named[name] if name in named else next(rest)).detach().contiguous() for name in names]


def _exported(call: ModelCall, path: Path) -> Path:
    """Export with PyTorch's older exporter, whose files ONNX Runtime supports best, or with its newer one if that fails."""
    import torch

    with warnings.catch_warnings(), silence():  # where it fails it prints the whole graph, thousands of lines
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(call.model, call.args, str(path), kwargs=dict(call.kwargs), dynamo=False, opset_version=17)  # type: ignore[arg-type]  # or a function
        except Exception:  # it may raise anything for a model that it cannot read
            torch.onnx.export(call.model, call.args, str(path), kwargs=dict(call.kwargs), dynamo=True)  # type: ignore[arg-type]  # or a function
    return path


RUNTIMES: Mapping[str, Callable[[ModelCall], Call]] = {"eager": eager, "inductor": inductor, "onnxruntime": onnxruntime}
TITLES = {"ours": "ansor", "eager": "PyTorch eager", "inductor": "PyTorch Inductor", "onnxruntime": "ONNX Runtime"}
NEEDS = {"onnxruntime": ("onnxruntime", "onnx")}


def made_ready(name: str, call: ModelCall) -> Call | str:
    """The call of a runtime, or why there is none: it is not installed, or the error that it raises for this model."""
    missing = [package for package in NEEDS.get(name, ()) if find_spec(package) is None]
    if missing:
        return f"not installed (pip install {' '.join(missing)})"
    try:
        return RUNTIMES[name](call)
    except Exception as error:  # whatever the error, the other runtimes can be compared
        return f"does not run it: {type(error).__name__}: {first_line(error)}"[:LONGEST_REASON]
