"""The four networks of MLPerf Tiny as int8 C: the memory that they need, and whether the C gives every byte of the integer reference.

    python benchmarks/tiny_networks.py                       all four for this machine's C compiler, in plain C
    python benchmarks/tiny_networks.py resnet8 --onnx        through torch.onnx.export and onnxruntime's quantiser instead of our own
    python benchmarks/tiny_networks.py --output DIR          keep the C
    python benchmarks/tiny_networks.py --target 'micro -board=mps2-an386 -stack=4K'    on a board: instructions, compared with the plain loops
    python benchmarks/tiny_networks.py --arena 256 ...       with arenas of up to 256 KB, which allow faster algorithms
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

import ansor
from ansor.integer.board_run import run_firmware
from ansor.integer.compiling import as_declared
from ansor.integer.firmware import build_firmware
from ansor.integer.network import IntegerNetwork
from ansor.integer.program import IntegerProgram
from ansor.integer.reading import network_of
from ansor.integer.reference import computed, run
from ansor.zoo import tiny

PLAIN = "cpu -mcpu=x86-64 -vector-bytes=4 -mattr=-sse2"
RUNS = 10
HEAD = ("network", "layers", "kernels", "MACs", "arena", "stack", "flash", "equals reference")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(tiny.NETWORKS)}; all by default")
    parser.add_argument("--target", default=PLAIN, help="target (default: %(default)s, which is C without vectors)")
    parser.add_argument("--trials", type=int, default=0, help="programs to measure for each network (default: none)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the search")
    parser.add_argument("--arena", type=int, default=0, metavar="KB", help="size that arenas may have (default: as much as the tensors need)")
    parser.add_argument("--onnx", action="store_true", help="quantise with onnxruntime, and compare with it")
    parser.add_argument("--output", metavar="DIR", help="keep the C in this folder, in a folder for each network")
    given = parser.parse_args(arguments)
    rows: list[tuple[str, ...]] = [HEAD]
    for name in given.names or tiny.NETWORKS:
        rows.append(_row(name, given))
        print(_line(rows[-1]) if len(rows) > 2 else f"{_line(HEAD)}\n{_line(rows[-1])}", flush=True)
    return 0 if all(row[-1].startswith("yes") for row in rows[1:]) else 1


def _line(row: tuple[str, ...]) -> str:
    return "  ".join([row[0].ljust(16), *(cell.rjust(9) for cell in row[1:-1]), row[-1]])


def _row(name: str, given: argparse.Namespace) -> tuple[str, ...]:
    chosen = tiny.NETWORKS[name]
    with tempfile.TemporaryDirectory() as folder:
        network = _from_onnx(name, Path(folder)) if given.onnx else network_of(chosen.model(), chosen.samples(), name)
    made = ansor.compile_int8(network, (), given.target, trials=given.trials, seed=given.seed, progress=False, arena_bytes=given.arena << 10)
    if given.output:
        made.save(Path(given.output) / name)
    if not made.target.is_local and not made.target.dialect.hosted:
        return _on_board(name, made, given)
    numbers = (len(made.code.calls), len(made.code.kernels), network.macs, made.arena_bytes, made.stack_bytes, made.constant_bytes)
    return (name, *(f"{number:,}" for number in numbers), _verdict(made))


def _on_board(name: str, made: IntegerProgram, given: argparse.Namespace) -> tuple[str, ...]:
    """The row for a board: arena, stack, and flash with the code; instructions of one run, and of the plain loops."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(given.output) / name if given.output else Path(folder) / "net"
        firmware = made.firmware(place)
        run = run_firmware(firmware)
        plain = run_firmware(build_firmware(as_declared(made.network, made.target), Path(folder) / "plain"))
    right = "no" if run.wrong or plain.wrong else "yes"
    numbers = (len(made.code.calls), len(made.code.kernels), made.network.macs, made.arena_bytes, run.stack_bytes, firmware.flash_bytes)
    share = f"{run.cost:,.0f} {run.unit}, {run.cost / made.network.macs:.2f} per MAC, {run.cost / plain.cost:.2f} of the plain loops' {plain.cost:,.0f}"
    return (name, *(f"{number:,}" for number in numbers), f"{right}, the self-test; {share}")


def _verdict(made: IntegerProgram) -> str:
    """Compare every byte of every output, on random inputs over the whole range."""
    if not made.target.is_local:
        return "not run here"
    network, generator, wrong = made.network, np.random.default_rng(0), 0
    for _ in range(RUNS):
        inputs = {name: generator.integers(-128, 128, network.tensors[name].shape).astype(np.int8) for name in network.inputs}
        expected, found = run(network, inputs), made.on_host.run(inputs)
        wrong += any(not np.array_equal(found[name], expected[name]) for name in network.outputs)
    return f"no: {wrong} of {RUNS} runs" if wrong or made.on_host.selftest() else f"yes, {RUNS} runs and the self-test"


def _from_onnx(name: str, folder: Path) -> IntegerNetwork:
    """The network as onnxruntime quantises it. Prints how far each operator's integers are from ours, for the same inputs."""
    import onnxruntime
    from onnxruntime import quantization

    chosen, samples = tiny.NETWORKS[name], tiny.NETWORKS[name].samples()
    given, made = str(folder / "float.onnx"), folder / "quantised.onnx"
    logging.getLogger().setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(chosen.model(), (samples[0],), given, dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])

    class Reader(quantization.CalibrationDataReader):
        left = iter([{"x": one.numpy()} for one in samples])

        def get_next(self) -> dict[str, object] | None:
            return next(self.left, None)

    quantization.quantize_static(given, str(made), Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QInt8, weight_type=quantization.QuantType.QInt8)  # fmt: skip
    network = network_of(made, (), name)
    _compare(network, made, samples, onnxruntime)
    return network


def _compare(network: IntegerNetwork, file: Path, samples: Sequence[torch.Tensor], onnxruntime: object) -> None:
    import onnx

    model = onnx.load(str(file))
    written = {name for node in model.graph.node if node.op_type == "QuantizeLinear" for name in node.output}
    names = [name for name in network.tensors if name in written]
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT8, None))
    options = onnxruntime.SessionOptions()  # type: ignore[attr-defined]  # untyped
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # type: ignore[attr-defined]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)  # type: ignore[attr-defined]
    away = most = total = 0
    for x in samples:
        values = dict(zip((one.name for one in session.get_outputs()), session.run(None, {"x": x.numpy()}), strict=True))
        theirs = {name: np.transpose(values[name], axes) if (axes := network.tensors[name].axes) else values[name] for name in names}
        theirs["x"] = network.tensors["x"].stored(x.numpy())
        for one in network.operators:
            ours = computed(one, *(theirs[name] for name in one.inputs))
            steps = np.abs(ours.astype(int) - theirs.setdefault(one.output, ours))
            away, most, total = away + int((steps > 0).sum()), max(most, int(steps.max())), total + steps.size
    print(f"{network.name}: {away:,} of {total:,} integers of {len(names)} tensors differ from onnxruntime's, by at most {most}")


if __name__ == "__main__":
    raise SystemExit(main())
