"""Measured programs of many operators: which operators, how to collect programs, and what models learn from them."""
