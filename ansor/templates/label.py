"""The algorithm name of a template, as used in records."""

TEMPLATE = "template "


def template_label(name: str) -> str:
    """The algorithm name of the template with that name."""
    return f"{TEMPLATE}{name!r}"
