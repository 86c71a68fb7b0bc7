"""Measured programs of many operators: which operators, how they are collected, and what models learn from them."""
