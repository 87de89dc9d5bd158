"""The Sobolev Independence Criterion: which columns matter, with few false discoveries."""

from sobolev._version import __version__
from sobolev.convex import ConvexSIC, sic_path
from sobolev.inference import sic_test

__all__ = ["ConvexSIC", "__version__", "sic_path", "sic_test"]
