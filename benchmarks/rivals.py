"""The other libraries: PyTorch eager, PyTorch Inductor and ONNX Runtime. Each prepares a call of an operator, or says why it cannot.

The number of threads is set once for the whole process: call `start` before anything is compiled.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO

import numpy as np
import torch
from kinds import Operator

from ansor.support.text import clip

ONNX_OPSET, ONNX_IR_VERSION = 20, 10


@dataclass(frozen=True)
class Ready:
    """A prepared operator. call: what is timed; result: its result as a tensor; seconds: the time to prepare it."""

    call: Callable[[], object]
    result: Callable[[], torch.Tensor]
    seconds: float = 0.0


@dataclass(frozen=True)
class Failed:
    """Why there is nothing to call: the library's error."""

    reason: str


def start(threads: int, cache: str) -> None:
    """Set PyTorch to `threads` threads; Inductor compiles into the folder `cache`, in one process at a time."""
    os.environ.update(TORCHINDUCTOR_CACHE_DIR=cache, TORCHINDUCTOR_COMPILE_THREADS="1")
    torch.set_num_threads(threads)


def eager(operator: Operator, threads: int) -> Ready:
    """The PyTorch function on plain tensors."""
    arguments = (*operator.inputs.values(), *operator.constants.values())
    return _ready(lambda: operator.function(*arguments))


class _Module(torch.nn.Module):
    """The operator as a module. Constants are buffers, which freezing may fold."""

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self.function, self.names = operator.function, tuple(operator.constants)
        for name, value in operator.constants.items():
            self.register_buffer(name, value)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs, *(self.get_buffer(name) for name in self.names))


def inductor(operator: Operator, threads: int) -> Ready:
    """`torch.compile(mode="max-autotune")`, with freezing when there are constants."""
    from torch._inductor import config

    begin = time.perf_counter()
    torch._dynamo.reset()
    config.freezing = bool(operator.constants)
    compiled = torch.compile(_Module(operator).eval(), mode="max-autotune")
    inputs = tuple(operator.inputs.values())
    with warnings.catch_warnings(), redirect_stderr(StringIO()):  # it prints all its attempts; errors are raised
        warnings.simplefilter("ignore")
        compiled(*inputs)
    return _ready(lambda: compiled(*inputs), time.perf_counter() - begin)


def onnxruntime(operator: Operator, threads: int) -> Ready:
    """A session of a model with only this operator. Constants are initialisers; inputs and output are bound, so calls do not copy them."""
    import onnxruntime as ort

    begin = time.perf_counter()
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.force_spinning_stop", "1")  # idle threads must not occupy the cores of the next library
    options.log_severity_level = 3
    session = ort.InferenceSession(onnx_model(operator), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in operator.inputs.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value.numpy()))
    binding.bind_output("output", "cpu")

    def call() -> None:
        session.run_with_iobinding(binding)

    def result() -> torch.Tensor:
        call()
        return torch.from_numpy(np.array(binding.copy_outputs_to_cpu()[0]))

    call()
    return Ready(call, result, time.perf_counter() - begin)


def onnx_model(operator: Operator) -> bytes:
    """The operator as a serialised ONNX model."""
    from onnx import checker, helper, numpy_helper

    constants = {name: value.numpy() for name, value in operator.constants.items()}
    constants |= {name: np.array(values, np.int64) for name, values in operator.shapes.items()}
    inputs = [_value(name, value) for name, value in operator.inputs.items()]
    graph = helper.make_graph(
        [helper.make_node(node.op, node.reads, [node.result], **node.attributes) for node in operator.nodes],
        "operator", inputs, [_value("output", _meta(operator))], [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", ONNX_OPSET)], ir_version=ONNX_IR_VERSION)
    checker.check_model(model)
    serialised: bytes = model.SerializeToString()
    return serialised


def _value(name: str, tensor: torch.Tensor) -> object:
    from onnx import helper

    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(str(tensor.dtype).removeprefix("torch.")))
    return helper.make_tensor_value_info(name, dtype, list(tensor.shape))


def _meta(operator: Operator) -> torch.Tensor:
    """A tensor with the shape and dtype of the result, which is not computed."""
    arguments = [tensor.to("meta") for tensor in (*operator.inputs.values(), *operator.constants.values())]
    return operator.function(*arguments)


def _ready(call: Callable[[], torch.Tensor], seconds: float = 0.0) -> Ready:
    return Ready(call, call, seconds)


RIVALS: Mapping[str, Callable[[Operator, int], Ready]] = {"eager": eager, "inductor": inductor, "onnxruntime": onnxruntime}


def ready(name: str, operator: Operator, threads: int) -> Ready | Failed:
    """Prepare the library of that name for an operator. Any error becomes the result."""
    try:
        return RIVALS[name](operator, threads)
    except Exception as error:
        return Failed(clip(f"{type(error).__name__}: {error}", 200))
