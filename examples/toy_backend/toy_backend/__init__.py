"""A backend for a fictitious machine, as a package outside of ansor."""
