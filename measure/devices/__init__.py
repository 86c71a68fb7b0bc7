"""Devices, one file per kind; `ansor.measure.device_kinds` finds them."""
