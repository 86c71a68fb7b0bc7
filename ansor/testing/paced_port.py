"""A serial port at the speed of a real one, for simulators that are faster."""

from __future__ import annotations

import time

from ansor.measure.wire.port import Port

PART = 64
BITS_A_BYTE = 10


class PacedPort:
    """A port with a limited number of bytes a second in each direction."""

    def __init__(self, port: Port, bytes_per_second: float) -> None:
        self._port, self._rate = port, bytes_per_second
        self._sending = self._receiving = 0.0

    def now(self) -> float:
        """The time in seconds."""
        return time.monotonic()

    def send(self, data: bytes) -> None:
        """Send data, and return once the line has transmitted it."""
        for start in range(0, len(data), PART):
            part = data[start : start + PART]
            self._sending = max(self._sending, self.now()) + len(part) / self._rate
            time.sleep(max(0.0, self._sending - self.now()))
            self._port.send(part)

    def receive(self, seconds: float) -> bytes:
        """Received data, no earlier than a real line would deliver it."""
        data = self._port.receive(seconds)
        self._receiving = max(self._receiving, self.now()) + len(data) / self._rate
        if data:
            time.sleep(max(0.0, self._receiving - self.now()))
        return data

    def close(self) -> None:
        """Close the port."""
        self._port.close()
