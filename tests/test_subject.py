"""What a person may name on the command line."""

from pathlib import Path

import pytest

from ansor.errors import AnsorError
from ansor.subject import NetworkSubject, OperatorSubject, resolve

DECLARATION = """
from ansor import te

def twice(n):
    x = te.placeholder((n,), name="x")
    return [x, te.compute((n,), lambda i: x[i] * 2.0, name="y")]
"""


def test_built_in_names() -> None:
    operator = resolve("matmul")
    assert isinstance(operator, OperatorSubject)
    assert len(operator.function(*operator.args)) == 3
    assert resolve("matmul", (8, 8, 8)).args == (8, 8, 8)  # type: ignore[union-attr]  # an operator, as above
    assert isinstance(resolve("resnet18"), NetworkSubject)


def test_a_file_with_one_function_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(DECLARATION)
    for text in (str(path), f"{path}:twice"):
        subject = resolve(text, (4,))
        assert isinstance(subject, OperatorSubject)
        assert subject.name == "twice"
        assert subject.function(*subject.args)[1].shape == (4,)


def test_a_file_with_a_model(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("def model():\n    return 1\n\ndef example_inputs():\n    return (2,)\n")
    subject = resolve(str(path))
    assert isinstance(subject, NetworkSubject)
    assert (subject.name, subject.model(), subject.example_inputs()) == ("net", 1, (2,))


@pytest.mark.parametrize(
    ("text", "content", "message"),
    [
        ("nothing", "", "no built-in network or operator"),
        ("gone.py", None, "not a file"),
        ("broken.py", "1 / 0", "fails with ZeroDivisionError"),
        ("ops.py:other", DECLARATION, "has no other; it has twice"),
        ("empty.py", "", "has 0 functions"),
        ("net.py", "def model():\n    return 1\n", "no example_inputs"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, text: str, content: str | None, message: str) -> None:
    name, colon, function = text.partition(":")
    if content is not None and name.endswith(".py"):
        (tmp_path / name).write_text(content)
    with pytest.raises(AnsorError, match=message):
        resolve(f"{tmp_path / name}{colon}{function}" if name.endswith(".py") else name)
