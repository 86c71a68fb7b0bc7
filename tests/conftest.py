"""What all tests share: helpers importable as `tests.<name>`, and property tests that draw the same examples in every run."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parent.parent))  # at the end, so that an installed package comes first

# A red run has to be about the change it ran on; `tests/fuzz.py` is where new examples are drawn.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
