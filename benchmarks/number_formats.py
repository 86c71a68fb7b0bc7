"""Compares networks in int8 and bfloat16 with float32 and with ONNX Runtime's int8, timed alternately in one process.

    python benchmarks/number_formats.py                                    # ResNet-18, ResNet-50 and BERT, nothing tuned, one thread, batch 1
    python benchmarks/number_formats.py resnet50 --trials 200
    python benchmarks/number_formats.py bert --formats int8

Each network runs in a separate process. Weights are random. int8: both use one ONNX file in QDQ format, quantised by onnxruntime (activations uint8, weights
int8 per channel); our call takes and returns stored bytes, theirs floats. Networks of tokens have floats between their products: ours is the graph quantised by
PyTorch's PT2E with its quantizer for x86, compiled by `ansor.compile`; theirs is an ONNX file in which only products by weights are quantised. bfloat16: the
module after `.bfloat16()`, compiled by `ansor.compile`.
Ratios are taken turn by turn: median, and the range of the middle 80 %; above 1, the format named last is faster. `error`: largest difference from the float32
output over its largest element. `exact`: whether our int8 gives every byte of the integer reference; "-" if there are floats in between. The lines below the
table say what cannot be compiled.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from common import add_target, console, machine_line, parser, short, table, target_of, use_threads
from network_models import NETWORKS, Inputs
from rich.console import Console

import ansor
from ansor.errors import AnsorError
from ansor.integer.program import IntegerProgram
from ansor.integer.reference import run as reference
from ansor.measure.interleaved import Ratio, interleaved, ratio
from ansor.networks.runtimes import ModelCall, onnxruntime

CHOSEN = ("resnet18", "resnet50", "bert")
Call = Callable[[], object]
FORMATS = ("int8", "bf16")
WARM = 0.05
RATIOS = {"ORT int8 / int8": ("ORT int8", "int8"), "fp32 / int8": ("fp32", "int8"), "fp32 / bf16": ("fp32", "bf16")}
"""For each column, the two sides whose seconds are divided."""


class Options(TypedDict):
    """The options shared by all compilations."""

    target: str
    trials: int
    progress: bool


@dataclass(frozen=True)
class Result:
    """A network's result. seconds: of a call, by side; ratios: by column; errors: by side; exact: for int8; refused: why a side has no result, by side."""

    name: str
    seconds: Mapping[str, float]
    ratios: Mapping[str, Ratio]
    errors: Mapping[str, float]
    exact: bool | None = None
    refused: Mapping[str, str] = field(default_factory=dict)


def quantised(model: torch.nn.Module, inputs: Inputs, folder: Path, products_only: bool) -> Path:
    """The model as an ONNX file in QDQ format. products_only: quantise only products by weights, and leave everything else in floats."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    exported, prepared, made = (folder / f"{name}.onnx" for name in ("float", "prepared", "quantised"))
    torch.onnx.export(model, inputs, str(exported), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])
    quant_pre_process(str(exported), str(prepared))

    class Reader(quantization.CalibrationDataReader):
        left = iter([{"x": inputs[0].numpy()}])

        def get_next(self) -> dict[str, object] | None:
            return next(self.left, None)

    quantization.quantize_static(str(prepared), str(made), Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
                                 op_types_to_quantize=["MatMul", "Gemm"] if products_only else None,
                                 extra_options={"MatMulConstBOnly": products_only})  # fmt: skip
    return made


def pt2e(model: torch.nn.Module, inputs: Inputs) -> torch.fx.GraphModule:
    """The model as PT2E quantises it for x86, calibrated with the inputs."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as inductor

    exported = torch.export.export(model, inputs).module()
    exported.graph.eliminate_dead_code()  # the quantizer fails on layers whose results are not read
    exported.recompile()
    prepared = prepare_pt2e(exported, inductor.X86InductorQuantizer().set_global(inductor.get_default_x86_inductor_quantization_config()))
    prepared(*inputs)
    made: torch.fx.GraphModule = convert_pt2e(prepared)
    return made


def integers_alone(made: IntegerProgram) -> tuple[Call, bool]:
    """A call on stored bytes, and whether it gives every byte of the integer reference."""
    generator, tensors = np.random.default_rng(0), made.network.tensors
    given = {name: generator.integers(-128, 128, tensors[name].shape).astype(np.int8) for name in made.network.inputs}
    wanted, found = reference(made.network, given), made.on_host.run(given)
    return lambda: made.on_host.run_again(given), all(np.array_equal(found[name], wanted[name]) for name in made.network.outputs)


def run(name: str, given: argparse.Namespace) -> Result:
    """Compile a network in all formats, check the results, and time all sides."""
    use_threads(given.threads)
    model, inputs = NETWORKS[name].model(), NETWORKS[name].inputs(1)
    options = Options(target=str(target_of(given)), trials=given.trials, progress=False)
    network = ansor.compile(model, inputs, **options)
    sides: dict[str, Call] = {"fp32": lambda: network(*inputs)}
    outputs: dict[str, object] = {}
    refused: dict[str, str] = {}
    exact = None
    floats = any(one.is_floating_point() for one in inputs)
    if "int8" in given.formats:
        with tempfile.TemporaryDirectory() as folder:
            file = quantised(model, inputs, Path(folder), products_only=not floats)
            sides["ORT int8"] = onnxruntime(ModelCall(model, inputs, file=file))
            try:
                if floats:
                    made = ansor.compile_int8(str(file), (), name=name, **options)
                    sides["int8"], exact = integers_alone(made)
                    (outputs["int8"],) = made({one: inputs[0].numpy() for one in made.network.inputs}).values()
                else:
                    in_bytes = ansor.compile(pt2e(model, inputs), inputs, **options)
                    sides["int8"], outputs["int8"] = lambda: in_bytes(*inputs), in_bytes(*inputs)
            except AnsorError as reason:
                refused["int8"] = str(reason)
    if "bf16" in given.formats:
        narrow = tuple(one.bfloat16() if one.is_floating_point() else one for one in inputs)
        compiled = ansor.compile(model.bfloat16(), narrow, **options)
        sides["bf16"], outputs["bf16"] = lambda: compiled(*narrow), compiled(*narrow)
    times = interleaved(sides, given.turns, warm=WARM)
    ratios = {column: ratio(times[ours], times[theirs]) for column, (theirs, ours) in RATIOS.items() if ours in times and theirs in times}
    errors = {side: error(found, network(*inputs)) for side, found in outputs.items()}
    return Result(name, {side: one.median for side, one in times.items()}, ratios, errors, exact, refused)


def error(found: object, wanted: object) -> float:
    """The largest difference over the largest element."""
    one, other = (torch.as_tensor(each).double() for each in (found, wanted))
    return float((one - other).abs().max() / other.abs().max())


def child(name: str) -> Result:
    """The result of a network from a separate process, whose last line is JSON."""
    finished = subprocess.run([sys.executable, *sys.argv, "--child", name], stdout=subprocess.PIPE, text=True, check=True)
    fields = json.loads(finished.stdout.splitlines()[-1])
    return Result(**fields | {"ratios": {column: Ratio(**one) for column, one in fields["ratios"].items()}})


def show(results: Sequence[Result], given: argparse.Namespace, out: Console) -> None:
    """Print the table, and below it the formats that cannot be compiled."""
    sides = ("fp32", "int8", "ORT int8", "bf16")
    columns = [*sides, *RATIOS, "exact", *(f"error {side}" for side in FORMATS)]
    shown = table(f"{target_of(given)}, batch 1, medians of {given.turns} turns, middle 80 %", ["network"], columns)
    for one in results:
        seconds = [short(one.seconds[side]) if side in one.seconds else "-" for side in sides]
        ratios = [str(one.ratios[column]) if column in one.ratios else "-" for column in RATIOS]
        exact = "-" if one.exact is None else "yes" if one.exact else "NO"
        shown.add_row(one.name, *seconds, *ratios, exact, *(f"{one.errors[side]:.0e}" if side in one.errors else "-" for side in FORMATS))
    out.print(shown)
    for one in results:
        for side, why in one.refused.items():
            out.print(f"{one.name}, {side}: {why}")
    out.print(machine_line())


def main() -> int:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", choices=[*NETWORKS, []], metavar="network", help=f"of {', '.join(NETWORKS)} (default: {' '.join(CHOSEN)})")
    options.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS, help="formats to compare with float32 (default: all)")
    options.add_argument("--trials", type=int, default=0, help="programs measured for a network in each format (default: %(default)s)")
    options.add_argument("--turns", type=int, default=30, help="turns of the comparison (default: %(default)s)")
    options.add_argument("--child", help=argparse.SUPPRESS)
    add_target(options)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger().setLevel(logging.ERROR)
    if given.child:
        with torch.no_grad():
            found = run(given.child, given)
        print(json.dumps(asdict(found)))
        return 0
    results = [child(name) for name in given.names or CHOSEN]
    show(results, given, console())
    return int(any(one.exact is False for one in results))


if __name__ == "__main__":
    sys.exit(main())
