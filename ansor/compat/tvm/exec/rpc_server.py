"""`rpc_server`: a worker of a farm."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Run it until Ctrl-C. Returns the exit status. Options about the server's own port are ignored: workers connect to their scheduler."""
    from ansor.cli import main as ansor

    parser = argparse.ArgumentParser(prog="rpc_server", description="Run a worker of a farm: `ansor farm worker` with TVM's options.")
    parser.add_argument("--tracker", required=True, metavar="HOST:PORT", help="where the scheduler listens")
    parser.add_argument("--key", required=True, help="the key that jobs request")
    parser.add_argument("--device", default="local", help="the device that runs programs; `ansor devices` lists the forms (default: this machine)")
    for name in ("--host", "--port", "--port-end", "--custom-addr"):
        parser.add_argument(name, help="not used")
    for name in ("--silent", "--no-fork", "--through-proxy"):
        parser.add_argument(name, action="store_true", help="not used")
    given = parser.parse_args(words)
    return ansor(["farm", "worker", given.tracker, "--key", given.key, "--device", given.device])


if __name__ == "__main__":
    sys.exit(main())
