"""`query_rpc_tracker`: what a farm has."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Print it; gives the exit status."""
    from ansor.cli import main as ansor
    from ansor.support.settings import tvm_tracker

    parser = argparse.ArgumentParser(prog="query_rpc_tracker", description="The devices of a farm: `ansor farm status`, in TVM's words.")
    host, port = tvm_tracker()
    parser.add_argument("--host", default=host)
    parser.add_argument("--port", default=port)
    given = parser.parse_args(words)
    return ansor(["farm", "status", f"{given.host}:{given.port}"])


if __name__ == "__main__":
    sys.exit(main())
