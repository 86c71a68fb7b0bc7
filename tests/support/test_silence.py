"""What is printed inside of it is shown nowhere, and what is printed around it is."""

import ctypes
import os
import subprocess
import sys

import pytest

from ansor.support.silence import silence


def test_nothing_is_shown_and_everything_around_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    c = ctypes.CDLL(None)
    c.puts(b"C before")
    print("Python before")
    with pytest.raises(KeyError), silence():
        c.puts(b"C inside")  # stays in C's buffer unless that is flushed
        os.write(2, b"descriptor inside\n")
        print("Python inside")
        print("Python inside", file=sys.stderr)
        raise KeyError
    os.write(2, b"descriptor after\n")
    print("Python after")
    said = capfd.readouterr()
    assert sorted(said.out.splitlines()) == ["C before", "Python after", "Python before"] and said.err == "descriptor after\n"


def test_streams_may_be_missing_or_closed() -> None:
    code = "import os, sys; from ansor.support.silence import silence; os.close(1); sys.stdout = None\nwith silence(): print('inside', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
