"""Pickled log lines: TVM's are read, ours look like them, and nothing in a line runs."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path

import pytest

from ansor.autotvm import decode, encode
from ansor.compat.autotvm.pickled_line import MODULE
from ansor.errors import RecordError
from tests.autotvm.lines import LINE

THEIRS = (
    "llvm" "\t"
    "gASVMgAAAAAAAABdlCiMBm1hdG11bJRNAAKMBlRFTlNPUpRNAAJNAAKGlIwHZmxvYXQzMpSHlIaUfZRlLg==" "\t"
    "gASVvQEAAAAAAACMFnR2bS5hdXRvdHZtLnRhc2suc3BhY2WUjAxDb25maWdFbnRpdHmUk5QpgZR9lCiMCXNwYWNlX21hcJSMC2NvbGxlY3Rpb25zlIwLT3JkZXJlZERpY3SUk5QpUpSM"
    "CF9jb2xsZWN0lImMB19sZW5ndGiUTowLX2VudGl0eV9tYXCUaAgpUpQojAR0aWxllGgAjAtTcGxpdEVudGl0eZSTlCmBlH2UjARzaXpllF2UKEr/////Swhlc2KMBW9yZGVylGgAjA1S"
    "ZW9yZGVyRW50aXR5lJOUKYGUfZSMBHBlcm2UXZQoSwFLAGVzYowDYW5ulGgAjA5Bbm5vdGF0ZUVudGl0eZSTlCmBlH2UjARhbm5zlF2UKIwGdW5yb2xslIwDdmVjlGVzYowCb3SUaACM"
    "EU90aGVyT3B0aW9uRW50aXR5lJOUKYGUfZSMA3ZhbJSJc2J1jAxfY29uc3RyYWludHOUXZSMBmVycm9yc5RdlIwJY29kZV9oYXNolIwDYWJjlIwEZmxvcJRLAIwEY29zdJROjAtpc19m"
    "YWxsYmFja5SJjAVpbmRleJRLwYwKX3NwYWNlX21hcJROdWIu" "\t"
    "gASVIwAAAAAAAAAoRz9TqSowVTJhhZRLAEc/6ZmZmZmZmkdB2JZAIAAAAHSULg==" "\t"
    "0.2" "\t"
    "0.9.0"
)
"""The output of TVM 0.9's `encode` for a configuration with a knob of each kind."""


class Touching:
    """Its pickle creates a file when Python loads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def with_part(number: int, part: bytes) -> str:
    """TVM's line with one pickle replaced."""
    parts = THEIRS.split("\t")
    parts[number] = base64.b64encode(part).decode()
    return "\t".join(parts)


def test_tvms_lines_are_read() -> None:
    inp, result = decode(THEIRS, "pickle")
    assert inp.target == "llvm" and inp.task.workload == ("matmul", 512, ("TENSOR", (512, 512), "float32"))
    assert inp.config.to_json_dict() == {
        "index": 193, "code_hash": "abc", "entity": [["tile", "sp", [-1, 8]], ["order", "re", [1, 0]], ["ann", "an", ["unroll", "vec"]], ["ot", "ot", False]],
    }  # fmt: skip
    assert result == ((0.0012,), 0, 0.8, 1650000000.0)


def test_lines_read_back_and_name_tvms_classes() -> None:
    for inp, result in (decode(LINE), decode(THEIRS, "pickle")):
        row = encode(inp, result, "pickle", tvm_version="0.9.0")
        assert decode(row, "pickle") == (inp, result) and encode(*decode(row, "pickle")) == encode(inp, result)
    config = base64.b64decode(row.split("\t")[2])
    assert f"c{MODULE}\nConfigEntity\n".encode() in config and f"c{MODULE}\nSplitEntity\n".encode() in config


def test_nothing_in_a_pickle_runs(tmp_path: Path) -> None:
    made = pickle.dumps(Touching(tmp_path / "made"))
    pickle.loads(made)
    assert (tmp_path / "made").exists()
    (tmp_path / "made").unlink()
    for number in (1, 2, 3):
        with pytest.raises(RecordError, match="its pickle names '.*', but only configurations of AutoTVM are read"):
            decode(with_part(number, made), "pickle")
    assert not (tmp_path / "made").exists()


def many() -> list[object]:
    """2 ** 40 values, in as many lists."""
    found: list[object] = []
    for _ in range(40):
        found = [found, found]
    return found


def endless() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (LINE, "it has 1 parts separated by tabs"),
        (with_part(1, pickle.dumps("matmul")), "its second part is not a task"),
        (with_part(1, pickle.dumps(many())), "more than 65536 values"),
        (with_part(1, pickle.dumps(endless())), "nested more than"),
        (with_part(1, pickle.dumps([b"x", (), {}])), "holds a bytes instead of a plain value"),
        (with_part(1, pickle.dumps([float("nan"), (), {}])), "holds a float"),
        (with_part(1, pickle.dumps(["x", (), {1: 2}])), "a name that is not a text"),
        (with_part(1, b"\x80\x02Nr\xff\xff\xff\xff."), "numbers its values beyond its length"),
        (with_part(1, b"\x80\x02N"), "its pickle cannot be read"),
        (with_part(1, b"\x80\x02Nb."), "its pickle cannot be read"),
        (with_part(1, b"\x80\x02Nq\x05Q."), "objects outside it"),
        (with_part(2, f"c{MODULE}\nConfigEntity\n)\x81.".encode("latin-1")), "a configuration without knobs"),
        (with_part(2, f"c{MODULE}\nSplitEntity\n)\x81.".encode("latin-1")), "holds a SplitEntity instead of a plain value"),
        (with_part(2, pickle.dumps({"index": 1})), "its config cannot be used"),
        (with_part(3, pickle.dumps(((-1.0,), 0, 1.0, 2.0))), "its costs are not a list of seconds"),
        (THEIRS.replace("\t0.2\t", "\tnew\t"), "its version is 'new', not a number"),
        (THEIRS.replace("llvm", "llvm -cc=/bin/sh"), "its target"),
    ],
)
def test_unusable_lines_are_refused(row: str, words: str) -> None:
    with pytest.raises(RecordError, match=words) as raised:
        decode(row, "pickle")
    assert str(raised.value).isprintable() and len(str(raised.value)) < 500
