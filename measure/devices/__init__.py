"""Devices, one kind a file; `ansor.measure.device_kinds` finds them."""
