"""Tests that come with the package, for who extends it: `device_contract`. They need pytest."""
