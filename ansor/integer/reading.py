"""Reads any supported model as an int8 network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ansor.errors import ModelError
from ansor.integer.from_onnx import from_onnx
from ansor.integer.network import IntegerNetwork
from ansor.support.text import clip, with_article


def network_of(model: object, calibration: Sequence[object] = (), name: str = "") -> IntegerNetwork:
    """Read a model as an integer network, called `name` if one is given.

    model: the path of an ONNX file in QDQ format, or of a `.pt2` file that `torch.export.save` wrote; a graph that PT2E quantised (what `convert_pt2e`
    returned, or its export); a PyTorch module, with calibration inputs; or an integer network. Raises ModelError for anything else, and if the model cannot
    be read.
    """
    if isinstance(model, IntegerNetwork):
        return replace(model, name=name or model.name)
    if isinstance(model, (str, Path)) and Path(model).suffix == ".pt2":
        program, inputs, stem = exported(Path(model))
        return network_of(program, calibration if len(calibration) else inputs, name or stem)
    if isinstance(model, (str, Path)):
        if len(calibration):
            raise ModelError(f"asked to read {model} with calibration inputs, but an ONNX file is quantised already; leave them out, or give a PyTorch module")
        found = from_onnx(model)
        return replace(found, name=name or found.name)
    from ansor.integer.from_pt2e import from_pt2e, is_pt2e
    from ansor.integer.from_torch import from_torch

    if is_pt2e(model):
        if len(calibration):
            raise ModelError("asked to read a graph that PT2E has quantised with calibration inputs, but it is quantised already; leave them out")
        return from_pt2e(model, name or "network")
    _check_model(model)
    return from_torch(model, calibration, name or type(model).__name__.lower())


def _check_model(model: object) -> None:
    """Raises ModelError unless the model is a module or an export of one."""
    import torch

    if isinstance(model, torch.nn.Module | torch.export.ExportedProgram):
        return
    takes = "the path of an ONNX file in QDQ format, a graph that PT2E quantised, or a PyTorch module with calibration inputs"
    raise ModelError(f"asked to read an int8 network from {with_article(type(model).__name__)}; give {takes}")


def exported(path: Path) -> tuple[object, Sequence[object], str]:
    """A program that `torch.export.save` wrote, its calibration inputs (none if PT2E has quantised it, else those of its export), and the file's stem.

    Raises ModelError if it cannot be read.
    """
    import torch

    from ansor.integer.from_pt2e import is_pt2e

    try:
        program = torch.export.load(path)
    except Exception as error:  # torch.export.load passes on any error of zip, JSON and pickle
        raise ModelError(f"asked to read {path}, which torch.export.load cannot load: {clip(' '.join(str(error).split()), 200)}") from error
    if is_pt2e(program):
        return program, (), path.stem
    inputs, named = program.example_inputs or ((), {})
    if not inputs or named or not all(isinstance(one, torch.Tensor) for one in inputs):
        raise ModelError(f"asked to quantise {path}, which was exported without tensors as inputs: export it with the inputs to calibrate with")
    return program, [inputs], path.stem
