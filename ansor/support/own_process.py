"""Starts modules of this package in other Python processes."""

from __future__ import annotations

import sys


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that calls a module's `main` in a process that imports what this one does.

    `python -m` would look in the working directory first, which may have a folder `ansor`, as a checkout has, or a file with the name of another module.
    """
    folders = [one for one in sys.path if isinstance(one, str)]  # imports ignore anything else there, such as a Path
    code = f"import sys; sys.path[:] = {folders!r}; from {module} import main; sys.exit(main())"
    return [sys.executable, "-c", code, *arguments]
