"""The name of a template among algorithms, in records too."""

TEMPLATE = "template "


def template_label(name: str) -> str:
    """The template of that name."""
    return f"{TEMPLATE}{name!r}"
