"""Tests for extensions of the package: `device_contract`, `wire_contract` (with `wire_programs`). They need pytest."""
