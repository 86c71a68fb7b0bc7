"""ansor: write what to compute, and let a search find how."""

__version__ = "0.1.0"
