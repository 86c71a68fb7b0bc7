"""Seconds that a trial's bytes take over a serial line: `python benchmarks/serial_line.py [--baud 115200]`.

4 KiB are written, a program runs, 512 bytes are read, by the monitor as a process behind a line that lets through as many bytes a second as a real one would.
"""

from __future__ import annotations

import argparse
import os
import platform
import time

from ansor.measure.wire.monitor_build import built_process
from ansor.measure.wire.port import Port, process_port
from ansor.measure.wire.serial import SerialWire
from ansor.testing.wire_programs import AARCH64, STOP, X86_64

PART = 64
BITS_A_BYTE = 10


class PacedPort:
    """A port that takes, and gives, only so many bytes a second."""

    def __init__(self, port: Port, bytes_per_second: float) -> None:
        self._port, self._rate = port, bytes_per_second
        self._sending = self._receiving = 0.0

    def now(self) -> float:
        return time.monotonic()

    def send(self, data: bytes) -> None:
        for start in range(0, len(data), PART):
            part = data[start : start + PART]
            self._sending = max(self._sending, self.now()) + len(part) / self._rate
            time.sleep(max(0.0, self._sending - self.now()))
            self._port.send(part)

    def receive(self, seconds: float) -> bytes:
        data = self._port.receive(seconds)
        self._receiving = max(self._receiving, self.now()) + len(data) / self._rate
        if data:
            time.sleep(max(0.0, self._receiving - self.now()))
        return data

    def close(self) -> None:
        self._port.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--baud", type=int, default=115_200)
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args()
    rate = options.baud / BITS_A_BYTE
    wire = SerialWire(PacedPort(process_port((str(built_process()), "1"), "process"), rate), "process", bytes_per_second=rate)
    base, programs = wire.facts.free[0], AARCH64 if platform.machine() in ("aarch64", "arm64") else X86_64
    wire.write(base, programs.adds)
    print("write 4 KiB   run    read 512   all, seconds   of the line, writing")
    for _ in range(options.trials):
        times = [time.perf_counter()]
        wire.write(base + 4096, os.urandom(4096))
        times.append(time.perf_counter())
        assert wire.execute(base, base + STOP, 5.0).reason == "stop"
        times.append(time.perf_counter())
        wire.read(base + 4096, 512)
        times.append(time.perf_counter())
        write, run, read = (after - before for before, after in zip(times, times[1:], strict=False))
        print(f"{write:9.3f} {run:8.3f} {read:9.3f} {times[-1] - times[0]:10.3f} {100 * 4096 / rate / write:17.0f} %")
    print(f"repeated {wire.traffic.repeated}, damaged {wire.traffic.damaged}")
    wire.close()


if __name__ == "__main__":
    main()
