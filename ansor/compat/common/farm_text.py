"""The devices that TVM's runners mean by a key and a tracker's address."""

from __future__ import annotations


def farm_text(key: str, host: str, port: int, slots: int | None = None) -> str:
    """As `ansor.measure.device_kinds` reads it. slots: programs on their way at a time; None: as many as the farm finds right."""
    asked = f"&slots={slots}" if slots is not None else ""
    return f"farm://{f'[{host}]' if ':' in host else host}:{port}?key={key}{asked}"
