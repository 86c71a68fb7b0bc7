"""Networks in int8 and bfloat16 compared with float32, and with ONNX Runtime's int8: all of them in turns in one process.

    python benchmarks/number_formats.py                                    # ResNet-18, ResNet-50 and BERT, nothing tuned, one thread, batch 1
    python benchmarks/number_formats.py resnet50 --trials 200
    python benchmarks/number_formats.py bert --formats int8

Each network is a process of its own. Weights are random. int8: one ONNX file in QDQ format, which onnxruntime quantises (activations uint8, weights int8 for
each channel), for both; our call begins and ends with stored bytes, theirs with floats. bfloat16: the module after `.bfloat16()`, compiled by `ansor.compile`.
Ratios are those of single turns: median, and the range of the middle 80 %; above 1, the format named last is faster. `error`: largest difference from the
float32 output over its largest element. `exact`: whether our int8 gives every byte of the integer reference. What cannot be compiled is told below the table.
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
FORMATS = ("int8", "bf16")
WARM = 0.05
RATIOS = {"ORT int8 / int8": ("ORT int8", "int8"), "fp32 / int8": ("fp32", "int8"), "fp32 / bf16": ("fp32", "bf16")}
"""Column -> whose seconds are divided by whose."""


@dataclass(frozen=True)
class Result:
    """seconds: of a call, by side; ratios: by column; error: of bfloat16; exact: of int8; refused: side -> why there is none."""

    name: str
    seconds: Mapping[str, float]
    ratios: Mapping[str, Ratio]
    error: float | None = None
    exact: bool | None = None
    refused: Mapping[str, str] = field(default_factory=dict)


def quantised(model: torch.nn.Module, inputs: Inputs, folder: Path) -> Path:
    """The model as an ONNX file in QDQ format."""
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
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)  # fmt: skip
    return made


def int8_call(made: IntegerProgram) -> tuple[Callable[[], object], bool]:
    """A call on stored bytes, and whether it gives every byte of the reference."""
    generator, tensors = np.random.default_rng(0), made.network.tensors
    given = {name: generator.integers(-128, 128, tensors[name].shape).astype(np.int8) for name in made.network.inputs}
    wanted, found = reference(made.network, given), made.on_host.run(given)
    return lambda: made.on_host.run_again(given), all(np.array_equal(found[name], wanted[name]) for name in made.network.outputs)


def run(name: str, given: argparse.Namespace) -> Result:
    """Compile all formats, check, time."""
    use_threads(given.threads)
    model, inputs, target = NETWORKS[name].model(), NETWORKS[name].inputs(1), str(target_of(given))
    network = ansor.compile(model, inputs, target, trials=given.trials, progress=False)
    expected = network(*inputs)
    sides: dict[str, Callable[[], object]] = {"fp32": lambda: network(*inputs)}
    refused: dict[str, str] = {}
    exact = error = None
    if "int8" in given.formats:
        with tempfile.TemporaryDirectory() as folder:
            file = quantised(model, inputs, Path(folder))
            sides["ORT int8"] = onnxruntime(ModelCall(model, inputs, file=file))
            try:
                sides["int8"], exact = int8_call(ansor.compile_int8(str(file), (), target, name=name, trials=given.trials, progress=False))
            except AnsorError as reason:
                refused["int8"] = str(reason)
    if "bf16" in given.formats:
        narrow = tuple(one.bfloat16() if one.is_floating_point() else one for one in inputs)
        compiled = ansor.compile(model.bfloat16(), narrow, target, trials=given.trials, progress=False)
        sides["bf16"] = lambda: compiled(*narrow)
        found = compiled(*narrow).float()  # type: ignore[attr-defined]  # one tensor, as the model gives one
        error = float((found - expected).abs().max() / expected.abs().max())  # type: ignore[operator,attr-defined]  # likewise
    times = interleaved(sides, given.turns, warm=WARM)
    ratios = {column: ratio(times[ours], times[theirs]) for column, (theirs, ours) in RATIOS.items() if ours in times and theirs in times}
    return Result(name, {side: one.median for side, one in times.items()}, ratios, error, exact, refused)


def child(name: str) -> Result:
    """The result of a process of its own, whose last line is JSON."""
    finished = subprocess.run([sys.executable, *sys.argv, "--child", name], stdout=subprocess.PIPE, text=True, check=True)
    fields = json.loads(finished.stdout.splitlines()[-1])
    return Result(**fields | {"ratios": {column: Ratio(**one) for column, one in fields["ratios"].items()}})


def show(results: Sequence[Result], given: argparse.Namespace, out: Console) -> None:
    """The table, and below it what is missing in it."""
    sides = ("fp32", "int8", "ORT int8", "bf16")
    shown = table(f"{target_of(given)}, batch 1, medians of {given.turns} turns, middle 80 %", ["network"], [*sides, *RATIOS, "exact", "error"])
    for one in results:
        seconds = [short(one.seconds[side]) if side in one.seconds else "-" for side in sides]
        ratios = [str(one.ratios[column]) if column in one.ratios else "-" for column in RATIOS]
        exact = "-" if one.exact is None else "yes" if one.exact else "NO"
        shown.add_row(one.name, *seconds, *ratios, exact, "-" if one.error is None else f"{one.error:.0e}")
    out.print(shown)
    for one in results:
        for side, why in one.refused.items():
            out.print(f"{one.name}, {side}: {why}")
    out.print(machine_line())


def main() -> int:
    options = parser(__doc__)
    options.add_argument("names", nargs="*", choices=[*NETWORKS, []], metavar="network", help=f"of {', '.join(NETWORKS)} (default: {' '.join(CHOSEN)})")
    options.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS, help="beside float32 (default: all)")
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
