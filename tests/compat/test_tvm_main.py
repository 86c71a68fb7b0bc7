"""Wrong arguments of `python -m ansor.compat.tvm`."""

from __future__ import annotations

import pytest

from ansor.compat.tvm.__main__ import main


@pytest.mark.parametrize(("arguments", "status", "words"), [
    ([], 2, "usage: python -m ansor.compat.tvm script.py"),
    (["--help"], 0, "usage: python -m ansor.compat.tvm script.py"),
    (["nope.py"], 2, "asked to run nope.py, which does not exist"),
])  # fmt: skip
def test_mistakes_give_a_message_and_a_status(arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    said = capsys.readouterr()
    assert caught.value.code == status and words in said.out + said.err
