from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ansor.commands.subject import NetworkSubject, OperatorSubject, load_file, resolve
from ansor.errors import AnsorError, DeclarationError
from ansor.targets.base import parse_target
from tests.onnx.single import X, saved

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILE = """
from ansor import te

def scaled(n, m=4):
    a = te.placeholder((n, m), name="a")
    return [a, te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="b")]

def broken(n):
    return 1 // (n - n)

def _hidden(): ...

number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ops.py"
    path.write_text(FILE)
    return path


def test_words_among_the_sizes_are_told(file: Path) -> None:
    subject = resolve(f"{file}:scaled", (64, "a"))
    assert isinstance(subject, OperatorSubject)
    with pytest.raises(DeclarationError, match="extent 'a' in dimension 1; extents are whole numbers.*; the function was called with --args 64,a"):
        subject.task(parse_target("cpu -threads=1"))


def test_builtin_names() -> None:
    assert isinstance(resolve("resnet18"), NetworkSubject)
    operator = resolve("matmul", (8, 16))
    assert isinstance(operator, OperatorSubject) and operator.args == (8, 16, 512), "sizes that are not given are the defaults"


def test_example_files() -> None:
    operator = resolve(str(EXAMPLES / "dense_gelu.py"))
    assert isinstance(operator, OperatorSubject) and operator.name == "dense_gelu" and operator.args == (128, 768, 3072)
    assert [tensor.name for tensor in operator.function(*operator.args)] == ["data", "weight", "bias", "gelu"]


@pytest.mark.torch
def test_a_file_with_a_model() -> None:
    network = resolve(str(EXAMPLES / "resnet18.py"))
    assert isinstance(network, NetworkSubject) and network.name == "resnet18"


@pytest.mark.torch
def test_modules_and_their_classes_are_models_too(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("import torch\nlayer = torch.nn.ReLU()\nclass Net(torch.nn.ReLU): ...\ndef small(): return layer\ndef example_inputs(): return (1,)\n")
    for name in ("layer", "Net", "small"):
        subject = resolve(f"{path}:{name}")
        assert isinstance(subject, NetworkSubject) and type(subject.model()).__name__ in ("ReLU", "Net")
        assert subject.example_inputs() == (1,)


DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass
from ansor import te

@dataclass
class Sizes:
    n: int = 3

def doubled():
    x = te.placeholder((Sizes().n,), name="x")
    return [x, te.compute((Sizes().n,), lambda i: x[i] * 2.0, name="y")]
"""


@pytest.mark.parametrize("name", ["with-dataclass", "json", "profile"])
def test_a_file_can_have_dataclasses_and_hides_no_module_of_its_name(tmp_path: Path, name: str) -> None:
    path, known = tmp_path / f"{name}.py", sys.modules.get(name)
    path.write_text(DATACLASS)
    for _ in range(2):
        operator = resolve(str(path))
        assert isinstance(operator, OperatorSubject) and len(operator.function()) == 2
    assert sys.modules.get(name) is known


def test_a_file_reads_its_own_options_and_not_those_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["ansor", "compile", "script.py"])
    path, before = tmp_path / "script.py", list(sys.argv)
    path.write_text("import sys\nseen = list(sys.argv)\ndef doubled(n=4): return sys.argv[1:]\n")
    assert load_file(path).seen == [str(path)] and sys.argv == before
    operator = resolve(str(path))
    assert isinstance(operator, OperatorSubject) and operator.function(4) == [] and sys.argv == before


def test_a_function_is_named_where_there_are_several(file: Path) -> None:
    operator = resolve(f"{file}:scaled", (3,))
    assert isinstance(operator, OperatorSubject) and operator.args == (3, 4)
    with pytest.raises(DeclarationError, match=r"has 2 functions \(scaled, broken\); name one"):
        resolve(str(file))


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        ("scaled", (), "scaled with no --args, but it takes n, m=4: missing a required argument: 'n'"),
        ("scaled", (1, 2, 3), "scaled with --args 1,2,3, but it takes n, m=4: too many positional arguments"),
        ("nothing", (), "the file has no nothing; it has scaled, broken"),
        ("number", (), "which is a int; name a function"),
    ],
)
def test_mistakes_are_told_in_a_sentence(file: Path, function: str, args: tuple[int, ...], message: str) -> None:
    with pytest.raises(DeclarationError, match=message.replace("(", r"\(")):
        resolve(f"{file}:{function}", args)


def test_a_function_that_fails_says_where(file: Path) -> None:
    operator = resolve(f"{file}:broken", (1,))
    assert isinstance(operator, OperatorSubject)
    with pytest.raises(DeclarationError, match=r"broken\(1\) fails with ZeroDivisionError: .* \(ops.py, line 9\)"):
        operator.function(*operator.args)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError: .* .bad.py, line 1."),
        ("def f(:", "SyntaxError"),
        ("from .ops import conv", r"bad.py, line 1\); the file is run by itself, .*: write `from name import ...` without the dot"),
        ("def f(*, n): ...", r"takes n: .*; sizes are given by their places, so let the function take n without a \* before"),
        ("raise ValueError('one\\ntwo')", "ValueError: one two "),
        ("x = 1", r"bad.py, which has no model\(\); add functions model\(\) and example_inputs\(\), or one that returns tensors"),
        ("class Net: ...\nclass Head: ...", r"no model\(\); it has the classes Net, Head; add functions model\(\) and example_inputs\(\)"),
        ("class Net: ...\ndef example_inputs(): ...", r"no model\(\); it has the class Net; add functions"),
        ("def model(): ...", r"no example_inputs\(\)"),
        ("def model(): ...\nexample_inputs = (1,)", r"bad.py has example_inputs, which is a tuple; make it a function that returns"),
    ],
)
def test_files_that_do_not_serve(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(content)
    with pytest.raises(AnsorError, match=message):
        resolve(str(path))


@pytest.mark.parametrize(("content", "message"), [
    ("def f(n=3): raise SystemExit(4)", r"^f\(3\) ends the program \(exit 4\); return from the function instead$"),
    ("def model(n): ...\ndef example_inputs(): ...", r"bad: model\(\) fails with TypeError: model\(\) missing 1 required .*: 'n'; fix the function$"),
])  # fmt: skip
def test_functions_that_do_not_return(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(content)
    subject = resolve(str(tmp_path / "bad.py"))
    with pytest.raises(AnsorError, match=message):
        subject.function(*subject.args) if isinstance(subject, OperatorSubject) else subject.model()


def test_an_onnx_file_has_no_functions() -> None:
    with pytest.raises(AnsorError, match=r"asked for net.onnx:main, but an ONNX file holds one model and no functions; leave :main out"):
        resolve("net.onnx:main")


def test_what_is_not_there() -> None:
    with pytest.raises(DeclarationError, match="which is not a file"):
        resolve("missing.py")
    with pytest.raises(AnsorError, match=r"did you mean matmul\?\); built in are"):
        resolve("matmull")


def test_networks_take_no_sizes() -> None:
    with pytest.raises(DeclarationError, match="leave --args out"):
        resolve("resnet18", (1,))


@pytest.mark.torch
def test_a_float_onnx_file(tmp_path: Path) -> None:
    saved(tmp_path / "net.onnx", "Relu", [X])
    subject = resolve(str(tmp_path / "net.onnx"))
    assert isinstance(subject, NetworkSubject) and subject.name == "net"
    inputs = subject.example_inputs()
    assert isinstance(inputs, tuple) and inputs[0].shape == X.shape
    assert subject.model() is subject.model()


RULES = """
from dataclasses import dataclass
from ansor.rules.base import Derived
from ansor.schedule.steps import Split

@dataclass(frozen=True)
class Halves:
    exclusive: bool = True

    def derive(self, sketch, stage, target):
        if stage == "b":
            yield Derived(sketch.then(Split(stage, "i", (2,), 2)))

sketch_rules = [Halves()]
"""


def test_rules_of_a_file_are_tried_before_those_of_the_target(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FILE + RULES)
    subject = resolve(f"{tmp_path / 'own.py'}:scaled", (8,))
    assert isinstance(subject, OperatorSubject)
    assert all("lengths=(2,)" in str(space.sketch) for space in subject.task(parse_target("cpu -threads=1")).spaces)


def test_rules_of_a_file_that_are_no_list_and_scripts_that_import_tvm_are_told(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FILE + "sketch_rules = 3")
    with pytest.raises(DeclarationError, match="has sketch_rules, which is an int; make it a list"):
        resolve(f"{tmp_path / 'own.py'}:scaled", (8,))
    (tmp_path / "script.py").write_text("import tvm")
    with pytest.raises(DeclarationError, match="for a script of TVM write `from ansor.compat import tvm`"):
        resolve(f"{tmp_path / 'script.py'}:scaled", (8,))
