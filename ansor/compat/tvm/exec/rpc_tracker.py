"""`rpc_tracker`: the scheduler of a farm, on TVM's port."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Run it until Ctrl-C. Returns the exit status. `--port-end` and `--silent` are ignored."""
    from ansor.cli import main as ansor

    parser = argparse.ArgumentParser(prog="rpc_tracker", description="Run the scheduler of a farm: `ansor farm scheduler` with TVM's options.")
    parser.add_argument("--host", default="0.0.0.0", help="address to listen on (default: all interfaces, which needs the certificates of `ansor farm init`)")
    parser.add_argument("--port", type=int, default=9190)
    parser.add_argument("--port-end", type=int, default=9199, help="ignored: only --port is tried")
    parser.add_argument("--silent", action="store_true", help="not used")
    given = parser.parse_args(words)
    return ansor(["farm", "scheduler", "--listen", f"{given.host}:{given.port}", "--dashboard", ""])


if __name__ == "__main__":
    sys.exit(main())
