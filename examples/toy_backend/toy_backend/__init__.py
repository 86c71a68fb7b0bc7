"""A backend for a machine that does not exist: what somebody writes who has one that we never heard of."""
