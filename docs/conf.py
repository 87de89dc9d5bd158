"""Sphinx configuration."""

from sobolev import __version__

project = "sobolev"
author = "The sobolev developers"
copyright = "2026, The sobolev developers"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["amsmath", "dollarmath"]
html_theme = "furo"
html_title = "sobolev"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
