"""ONNX files as onnxruntime's quantiser writes them, unchanged; the same changed in one place; and damaged ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ansor.errors import ModelError
from ansor.integer.from_onnx import from_onnx
from ansor.integer.reference import computed, run
from tests.integer.models import quantised_file, samples, small

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module", params=["int8", "uint8"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_file(small(), tmp_path_factory.mktemp("onnx"), unsigned=request.param == "uint8", per_channel=request.param == "int8")


def test_integers_are_those_of_onnxruntime(file: Path) -> None:
    """At most one step apart, where its products in single precision round the other way."""
    network, model = from_onnx(file), onnx.load(str(file))
    made = {name for node in model.graph.node if node.op_type == "QuantizeLinear" for name in node.output}
    names = [name for name in network.tensors if name in made]
    unsigned = network.tensors[names[0]].unsigned
    for name in names:
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.UINT8 if unsigned else TensorProto.INT8, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    away = total = 0
    for x in samples():
        values = dict(zip((one.name for one in session.get_outputs()), session.run(None, {"x": x.numpy()}), strict=True))
        theirs = {name: (values[name].astype(int) - (128 if unsigned else 0)).astype(np.int8) for name in names}
        theirs = {name: np.transpose(value, network.tensors[name].axes) if network.tensors[name].axes else value for name, value in theirs.items()}
        theirs["x"] = network.tensors["x"].stored(x.numpy())
        for one in network.operators:
            ours = computed(one, *(theirs[name] for name in one.inputs))
            steps = np.abs(ours.astype(int) - theirs.setdefault(one.output, ours))
            assert steps.max() <= 1, one.output
            away, total = away + int((steps > 0).sum()), total + steps.size
    print(f"{away} of {total} integers are one step away from onnxruntime's")
    assert away < total / 200 and len(names) >= 7 and network.left_out == ("softmax",)


def _changed(file: Path, folder: Path, change: Any) -> Path:
    model = onnx.load(str(file))
    change(model.graph)
    place = folder / "changed.onnx"
    place.write_bytes(model.SerializeToString())
    return place


def _node(graph: Any, kind: str) -> Any:
    return next(node for node in graph.node if node.op_type == kind)


def _rename(kind: str, other: str) -> Any:
    def change(graph: Any) -> None:
        node = _node(graph, kind)
        node.op_type = other
        del node.attribute[:]

    return change


def _attribute(kind: str, name: str, value: object) -> Any:
    def change(graph: Any) -> None:
        node = _node(graph, kind)
        kept = [one for one in node.attribute if one.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])

    return change


def _zero_point(graph: Any) -> None:
    name = next(node for node in graph.node if node.op_type == "DequantizeLinear" and "weight" in node.input[0]).input[2]
    place = next(one for one in graph.initializer if one.name == name)
    place.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(place) + np.int8(3), name))


def _not_quantised(graph: Any) -> None:
    conv = _node(graph, "Conv")
    reader = next(node for node in graph.node if node.op_type == "QuantizeLinear" and node.input[0] == conv.output[0])
    after = next(node for node in graph.node if node.op_type == "DequantizeLinear" and node.input[0] == reader.output[0])
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name == after.output[0]:
                node.input[place] = conv.output[0]


CHANGES = {
    "an operator": (_rename("HardSwish", "Softplus"), "Softplus .* is not supported; supported operators: "),
    "another": (_rename("MaxPool", "Round"), "Round"),
    "groups": (_attribute("Conv", "group", 2), "groups|damaged|contradicts|sound"),
    "strides": (_attribute("Conv", "strides", [0, 0]), "strides|sound"),
    "pads": (_attribute("Conv", "pads", [-1, 0, 0, 0]), "pads"),
    "transA": (_attribute("Gemm", "transA", 1), "transA"),
    "zero point": (_zero_point, "zero point 3; quantise weights symmetrically"),
    "not quantised": (_not_quantised, "which is not quantised: quantise every result"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_supported_is_said(file: Path, tmp_path: Path, name: str) -> None:
    change, says = CHANGES[name]
    place = _changed(file, tmp_path, change)
    with pytest.raises(ModelError, match=says):
        from_onnx(place)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_read_or_refused(file: Path, tmp_path: Path, seed: int) -> None:
    """Bytes flipped, cut, or put in twice: a network that can be run, or a ModelError."""
    generator, data = np.random.default_rng(seed), file.read_bytes()
    place = tmp_path / "damaged.onnx"
    refused = 0
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(int(generator.integers(1, 4))):
            damaged[int(generator.integers(len(damaged)))] = int(generator.integers(256))
        if generator.random() < 0.3:
            cut = int(generator.integers(len(damaged)))
            damaged = damaged[:cut] if generator.random() < 0.5 else damaged[:cut] + damaged[cut // 2 :]
        place.write_bytes(bytes(damaged))
        try:
            from_onnx(place)
        except ModelError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused


def _weights_in_float(graph: Any) -> None:
    """Weights as training frameworks export them: floats that the file quantises."""
    for node in [node for node in graph.node if node.op_type == "DequantizeLinear"]:
        found = next((one for one in graph.initializer if one.name == node.input[0]), None)
        if found is None or found.data_type not in (TensorProto.INT8, TensorProto.UINT8):
            continue
        _, scale, zero = (numpy_helper.to_array(next(one for one in graph.initializer if one.name == name)) for name in node.input)
        values = numpy_helper.to_array(found).astype(np.float32)
        shape = [-1 if scale.ndim and place == next((one.i for one in node.attribute if one.name == "axis"), 1) else 1 for place in range(values.ndim)]
        real = (values - zero.astype(np.float32).reshape(shape if zero.ndim else ())) * scale.reshape(shape if scale.ndim else ())
        graph.initializer.append(numpy_helper.from_array(real.astype(np.float32), f"{found.name}_real"))
        made = helper.make_node("QuantizeLinear", [f"{found.name}_real", *node.input[1:]], [f"{found.name}_made"], f"{found.name}_quantise")
        made.attribute.extend(node.attribute)
        graph.node.insert(0, made)
        node.input[0] = f"{found.name}_made"


def _padded_before(graph: Any, value: float = 0.0, pads: list[int] | None = None, again: bool = False) -> None:
    """The padding of the first convolution as a node of its own, as TensorFlow's are. again: with a quantisation behind it."""
    conv = _node(graph, "Conv")
    around = next(list(one.ints) for one in conv.attribute if one.name == "pads")
    wide = [0, 0, *around[:2], 0, 0, *around[2:]] if pads is None else pads
    graph.initializer.append(numpy_helper.from_array(np.array(wide, np.int64), "around"))
    graph.initializer.append(numpy_helper.from_array(np.array(value, np.float32), "value"))
    added = [helper.make_node("Pad", [conv.input[0], "around", "value"], ["padded"], "pad")]
    if again:
        before = next(node for node in graph.node if node.output[0] == conv.input[0])
        added += [helper.make_node("QuantizeLinear", ["padded", *before.input[1:]], ["padded_q"], "padded_q")]
        added += [helper.make_node("DequantizeLinear", ["padded_q", *before.input[1:]], ["padded_dq"], "padded_dq")]
    _attribute("Conv", "pads", [0, 0, 0, 0])(graph)
    place = list(graph.node).index(conv)
    conv.input[0] = added[-1].output[0]
    for number, node in enumerate(added):
        graph.node.insert(place + number, node)


FORMS = {
    "weights in float": _weights_in_float, "padding before": _padded_before, "padding, quantised": lambda graph: _padded_before(graph, again=True),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_other_ways_to_write_the_same_network(file: Path, tmp_path: Path, name: str) -> None:
    network, other = from_onnx(file), from_onnx(_changed(file, tmp_path, FORMS[name]))
    for x in samples(3):
        inputs = {"x": network.tensors["x"].stored(x.numpy())}
        (output,), (same,) = network.outputs, other.outputs
        np.testing.assert_array_equal(run(network, inputs)[output], run(other, inputs)[same])


@pytest.mark.parametrize(("value", "pads"), [(1.0, None), (0.0, [1, 0, 1, 1, 0, 0, 1, 1]), (0.0, [0, 0, -1, 1, 0, 0, 1, 1])])
def test_other_padding_is_refused(file: Path, tmp_path: Path, value: float, pads: list[int] | None) -> None:
    with pytest.raises(ModelError, match="pads by .* only zeros around images"):
        from_onnx(_changed(file, tmp_path, lambda graph: _padded_before(graph, value, pads)))


def test_padding_before_a_pool_is_refused(file: Path, tmp_path: Path) -> None:
    def change(graph: Any) -> None:
        _padded_before(graph)
        pool = _node(graph, "MaxPool")
        pool.input[0] = "padded"

    with pytest.raises(ModelError, match="which is padded; padding is supported only before convolutions"):
        from_onnx(_changed(file, tmp_path, change))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="which is not a file"):
        from_onnx(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(ModelError, match="not a valid ONNX model"):
        from_onnx(tmp_path / "text.onnx")
