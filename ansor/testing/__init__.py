"""Tests that come with the package, for who extends it: `device_contract`, `wire_contract` (with `wire_programs`). They need pytest."""
