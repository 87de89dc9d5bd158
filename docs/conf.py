"""Sphinx configuration. Formulas become MathML, so that the pages need no network."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

from sobolev import __version__

project = "sobolev"
author = "The sobolev developers"
copyright = "2026, The sobolev developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["amsmath", "dollarmath"]
html_theme = "furo"
html_title = "sobolev"
html_math_renderer = "mathml"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True


def _inline(writer, node):
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
