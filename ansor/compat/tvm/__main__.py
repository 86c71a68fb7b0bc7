"""`python -m ansor.compat.tvm script.py [arguments]`: run an unchanged TVM script, with this package as `tvm`."""

from __future__ import annotations

import importlib
import runpy
import sys
import traceback
from pathlib import Path

from ansor.compat.tvm.alias import install
from ansor.compat.tvm.missing import MissingModuleError, MissingNameError


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
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    except (MissingModuleError, MissingNameError) as error:
        print(f"{''.join(traceback.format_list(_outside(error)))}{type(error).__name__}: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _outside(error: Exception) -> list[traceback.FrameSummary]:
    """Where the script asks for something missing: the frames outside this package and Python's machinery of imports."""
    ours = (str(Path(__file__).parent), str(Path(importlib.__file__).parent), "<frozen ", runpy.__file__)
    return [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]


if __name__ == "__main__":
    main(sys.argv[1:])
