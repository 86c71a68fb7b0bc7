"""`python -m ansor.compat.tvm script.py [arguments]`: run an unchanged TVM script, with this package as `tvm`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from ansor.compat.tvm.alias import install


def main(arguments: list[str]) -> None:
    """Run the script named first; the rest is its command line. Exits with 2 if no script is named or it does not exist."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m ansor.compat.tvm script.py [arguments]", file=sys.stderr if not arguments else sys.stdout)
        raise SystemExit(0 if arguments else 2)
    if not Path(arguments[0]).exists():
        print(f"asked to run {arguments[0]}, which does not exist; name a script written for TVM", file=sys.stderr)
        raise SystemExit(2)
    install()
    sys.argv = arguments
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
