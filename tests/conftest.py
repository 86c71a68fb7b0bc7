"""Makes helpers beside the tests importable as `tests.<name>`: the importlib mode puts no folder on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))  # at the end, so that an installed package comes first
