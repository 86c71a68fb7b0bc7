"""Files of lines, whatever the lines are."""

import io
import logging
from pathlib import Path

import pytest

from ansor.errors import RecordError
from ansor.support.json_values import refuse
from ansor.support.line_files import Loaded, Skipped, gathered, read, warned


def _number(row: str) -> int | None:
    if row.startswith("#"):
        return None
    return int(row) if row.strip().isdigit() else refuse("it is no number")


def test_lines_are_read_or_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    content = b"# comment\n1\n\nx\n\xff\n0\n"
    (tmp_path / "log").write_bytes(content)
    wanted = Loaded((1, 0), (Skipped(4, "it is no number"), Skipped(5, "it is not UTF-8")))
    assert gathered(read(tmp_path / "log", _number)) == gathered(read(str(tmp_path / "log"), _number)) == gathered(read(io.BytesIO(content), _number)) == wanted
    assert gathered(read(io.StringIO("7\nx"), _number)) == Loaded((7,), (Skipped(2, "it is no number"),))
    with caplog.at_level(logging.WARNING, "here"):
        assert list(warned(read(tmp_path / "log", _number), "my\nlog", logging.getLogger("here"))) == [1, 0]
    assert [record.getMessage() for record in caplog.records] == [
        r"line 4 of 'my\nlog' is left out: it is no number", r"line 5 of 'my\nlog' is left out: it is not UTF-8",
    ]  # fmt: skip


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be read"):
        gathered(read(tmp_path, _number))
