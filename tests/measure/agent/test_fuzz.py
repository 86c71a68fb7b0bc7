"""Thousands of broken streams: the agent answers what it understands, says one error, and ends. No crash, nothing left behind."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ansor.codegen.toolchain import compile_files, find_compiler
from ansor.measure.agent.build import SOURCE

pytestmark = pytest.mark.compiler
FRAME = re.compile(rb"(hello 1|yes|no|put|dropped|ran (?:exit|signal|timeout) [\d ]+|error [a-z]+) (\d+)\n")
SANITIZE = ("-O1", "-g", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def message(words: str, body: bytes = b"") -> bytes:
    return f"{words} {len(body)}\n".encode() + body


def stream(program: bytes, chance: random.Random) -> list[bytes]:
    """A session as a client might have it."""
    digest, blob = hashlib.sha256(program).hexdigest(), chance.randbytes(chance.randrange(200))
    own = hashlib.sha256(blob).hexdigest()
    middle = [
        message(f"put {own}", blob), message(f"have file {own}"), message("have kept ours"), message(f"drop file {own}"), message("drop kept ours"),
        message(f"run {digest} reference ours 2000 1000000000 100000", b"echo a"), message(f"run {digest} trial ours 2000 1000000000 100000", b"kept"),
        message(f"run {digest} trial - 2000 1000000000 100000", b"exit 3"), message(f"run {own} trial - 2000 1000000000 100000", b"echo"),
    ]  # fmt: skip
    return [message("hello 1"), message(f"put {digest}", program), *chance.choices(middle, k=chance.randrange(1, 6))]


def mutated(messages: list[bytes], chance: random.Random) -> bytes:
    """Bytes changed, lost, put in or repeated; mostly in first lines."""
    found = bytearray(b"".join(messages))
    starts = [sum(map(len, messages[:index])) for index in range(len(messages))]
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        at = min(len(found), chance.choice(starts) + chance.randrange(120))
        kind = chance.randrange(6)
        if kind == 0:
            found[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del found[at : at + chance.choice((1, 1, 3, 60))]
        elif kind == 2:
            found[at:at] = chance.choice((b" ", b"\n", b"0", b"-", b"9" * 20, b"../", b"a" * 400, b"\0", b"\xff", b"file kept "))
        elif kind == 3:
            found[at:at] = found[at : at + chance.randrange(300)]
        elif kind == 4:
            del found[at:]
        else:
            found[at:at] = chance.randbytes(chance.randrange(40))
    return bytes(found)


def check_answers(answers: bytes) -> None:
    """Whole answers, and nothing behind them; after an error of the protocol nothing comes."""
    at = 0
    while at < len(answers):
        found = FRAME.match(answers, at)
        assert found is not None, answers[at : at + 100]
        at = found.end() + int(found[2])
    assert at == len(answers)
    assert b"error protocol" not in answers or answers.rpartition(b"error protocol")[2].count(b"\n") == 1


def run_streams(agent: Path, program: bytes, folder: Path, count: int, seed: int) -> None:
    """One agent for each stream, started by a shell: that is quicker than from here. All share a time limit: one for each would double the processes."""
    chance = random.Random(seed)
    store, streams = folder / "store", folder / "streams"
    streams.mkdir()
    for number in range(count):
        (streams / str(number)).write_bytes(mutated(stream(program, chance), chance))
    loop = 'for given in *; do "$0" -store "$1" -wait 1 < $given > $given.out 2> $given.err || echo "$given: $?"; done'
    ended = subprocess.run(["timeout", "400", "sh", "-c", loop, agent, store], cwd=streams, stdout=subprocess.PIPE, text=True, timeout=500)
    failed, last = ended.stdout, max(streams.glob("*.out"), key=lambda path: path.stat().st_mtime_ns)
    assert ended.returncode == 0, f"the agent was still at stream {last.stem} after 400 s"
    said = "".join(path.read_text(errors="replace") for path in streams.glob("*.err"))
    assert not failed and not said, (failed, said[-3000:])
    for number in range(count):
        check_answers((streams / f"{number}.out").read_bytes())
    assert all(name == "lock" or name.startswith(("file-", "kept-")) for name in os.listdir(store))
    for path in store.glob("file-*"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name[5:]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent with checks of addresses where a compiler here has the runtime for them; of undefined behaviour, with traps, everywhere."""
    place = tmp_path_factory.mktemp("sanitized") / "agent"
    for command in ("gcc", "clang"):
        if shutil.which(command):
            built = subprocess.run([command, *SANITIZE, str(SOURCE), "-o", str(place)], capture_output=True, timeout=120)
            if built.returncode == 0 and subprocess.run([place, "-version"], capture_output=True, timeout=60).returncode == 0:
                return place
    flags = ("-O1", "-w", "-fsanitize=undefined", "-fsanitize-trap=undefined")
    compiled = compile_files(find_compiler("zig"), [SOURCE], place, flags, timeout=300)
    assert compiled.ok, compiled.text
    return place


def test_broken_streams(agent: Path, fake: bytes, tmp_path: Path) -> None:
    run_streams(agent, fake, tmp_path, 1500, 1)


def test_broken_streams_with_checks(sanitized: Path, fake: bytes, tmp_path: Path) -> None:
    run_streams(sanitized, fake, tmp_path, 500, 2)


def test_streams_that_are_whole_are_answered(agent: Path, fake: bytes, tmp_path: Path) -> None:
    chance = random.Random(3)
    messages = stream(fake, chance)
    (tmp_path / "stream").write_bytes(b"".join(messages))
    with (tmp_path / "stream").open("rb") as given:
        answers = subprocess.run([agent, "-store", tmp_path / "store"], stdin=given, stdout=subprocess.PIPE, timeout=60, check=True).stdout
    check_answers(answers)
    assert len(FRAME.findall(answers)) == len(messages)


@pytest.mark.parametrize("broken", [
    b"\n", b" \n", b"0\n", b"hello 0\n", b"hello  1 0\n", b" hello 1 0\n", b"hello 1 0 \n", b"hello 1 -0\n", b"hello 1 1\nx", b"hello 1\n", b"hello 1 0 0\n",
    b"have file x 0\n", b"a" * 256, b"a b c d e f g h i 0\n", b"hello 1 99999999999999999999\n", b"put x 0\n", b"hello 1 0\nhave kept ../x 0\n",
    b"hello 1 0\nhave kept -x 0\n", b"hello 1 0\nhave kept " + b"a" * 65 + b" 0\n", b"hello 1 0\nhave file " + b"A" * 64 + b" 0\n",
    b"hello 1 0\nrun " + b"0" * 64 + b" trial - 0 1 1 0\n", b"hello 1 0\nrun " + b"0" * 64 + b" other - 1 1 1 0\n",
    b"hello 1 0\nrun " + b"0" * 64 + b" trial - 1 1 1 262145\n",
])  # fmt: skip
def test_what_is_no_message_gets_one_error(agent: Path, tmp_path: Path, broken: bytes) -> None:
    (tmp_path / "stream").write_bytes(broken)
    with (tmp_path / "stream").open("rb") as given:
        ended = subprocess.run([agent, "-store", tmp_path / "store"], stdin=given, capture_output=True, timeout=60)
    assert ended.returncode == 0 and not ended.stderr
    check_answers(ended.stdout)
    assert b"error protocol 59\n" in ended.stdout


def test_another_version_is_told(agent: Path, tmp_path: Path, ask: Callable[[bytes], bytes]) -> None:
    assert ask(b"hello 2 0\n") == b"error version 27\nthis agent speaks version 1"


@pytest.fixture
def ask(agent: Path, tmp_path: Path) -> Callable[[bytes], bytes]:
    def answer(given: bytes) -> bytes:
        return subprocess.run([agent, "-store", tmp_path / "store"], input=given, stdout=subprocess.PIPE, timeout=60, check=True).stdout

    return answer
