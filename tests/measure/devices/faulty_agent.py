"""An agent with a faulty connection: `faulty_agent.py FAULT MARK AGENT ...` forwards between the agent and its peer until the answer to a trial comes.

The file MARK is then created, so that the fault occurs once. FAULT: cut, truncate, hang, garbage, early (it breaks before a program was sent).
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO


def passed_on(source: IO[bytes], target: IO[bytes]) -> None:
    while part := os.read(source.fileno(), 65536):
        target.write(part)
        target.flush()
    target.close()


def fail(fault: str, answer: bytes, agent: subprocess.Popen[bytes]) -> None:
    if fault == "truncate":
        os.write(1, answer[: len(answer) // 2])
    if fault == "garbage":
        os.write(1, b"\x00\xff what is that?\n" * 10)
    if fault == "hang":
        time.sleep(600)
    agent.kill()
    os._exit(1)


def main() -> None:
    fault, mark = sys.argv[1], Path(sys.argv[2])
    agent = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert agent.stdin is not None and agent.stdout is not None
    threading.Thread(target=passed_on, args=(sys.stdin.buffer, agent.stdin), daemon=True).start()
    trials = 0
    while answer := os.read(agent.stdout.fileno(), 65536):
        while select.select([agent.stdout], [], [], 0.05)[0] and (more := os.read(agent.stdout.fileno(), 65536)):
            answer += more
        if fault == "early" and answer.startswith(b"hello") and not mark.exists():
            mark.touch()
            os.write(1, answer)
            agent.kill()
            os._exit(1)
        trials += answer.startswith(b"ran ") and b'"costs"' in answer
        if trials and not mark.exists():
            mark.touch()
            fail(fault, answer, agent)
        os.write(1, answer)


main()
