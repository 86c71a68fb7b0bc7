"""`query_rpc_tracker`: lists the devices of a farm."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Print the devices. Returns the exit status."""
    from ansor.cli import main as ansor
    from ansor.support.settings import tvm_tracker

    parser = argparse.ArgumentParser(prog="query_rpc_tracker", description="List the devices of a farm: `ansor farm status` with TVM's options.")
    host, port = tvm_tracker()
    parser.add_argument("--host", default=host)
    parser.add_argument("--port", default=port)
    given = parser.parse_args(words)
    return ansor(["farm", "status", f"{given.host}:{given.port}"])


if __name__ == "__main__":
    sys.exit(main())
