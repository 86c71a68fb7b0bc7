"""Data sets of measured programs of many operators: the operators, collecting programs, and training models on them."""
