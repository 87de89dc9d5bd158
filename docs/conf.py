"""Sphinx configuration. Formulas become MathML, so that the pages need no network."""

import textwrap
import warnings

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

from sobolev import __version__

# Warnings on the pages of the gallery: without the file, and on lines that fit.
warnings.formatwarning = lambda message, category, *_: (
    textwrap.fill(f"{category.__name__}: {message}", 88) + "\n"
)

project = "sobolev"
author = "The sobolev developers"
copyright = "2026, The sobolev developers"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["amsmath", "dollarmath"]
html_theme = "furo"
html_title = "sobolev"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"
myst_heading_anchors = 3
exclude_patterns = ["_build", "results/data"]
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
# The scripts of examples/ run in the order of their names; their pages show no times.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "capture_repr": (),
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "min_reported_time": float("inf"),
    "notebook_extensions": set(),
    "reference_url": {"sobolev": None},
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "thumbnail_size": (800, 560),
    "write_computation_times": False,
}


def _inline(writer, node):
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(writer, node):
    writer.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
