"""The monitor on a Cortex-M4 of QEMU, behind its serial line."""

from __future__ import annotations

import pytest

from ansor.testing.wire_programs import THUMB
from tests.measure.wire.monitor_boards import OnBoard

pytestmark = pytest.mark.compiler


class TestCortexM4(OnBoard):
    board, memory, programs, nowhere = "mps2-an386", (0x20010000, 0x4000), THUMB, 0x60000000
