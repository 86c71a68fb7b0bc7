"""The documentation as a site: `sphinx-build -W -c docs . build/site`.

The pages are the Markdown files that the repository shows, and docs/index.md orders them.
"""

from importlib.metadata import version as installed

project = "ansor"
author = "the authors of ansor"
release = version = installed("ansor")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/dataset/README.md", "docs/**"]
exclude_patterns = ["docs/conf.py"]

myst_heading_anchors = 4
"""Links to headings are those that the repository shows."""

default_role = "code"
"""Names in docstrings stand between single backticks."""

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_google_docstring = True

html_theme = "furo"
html_title = f"ansor {release}"
