"""What stands for a template where algorithms are named, in records too."""

TEMPLATE = "template "


def template_label(name: str) -> str:
    """The template of that name."""
    return f"{TEMPLATE}{name!r}"
