"""Models of one column given the others: what the holdout randomization test draws from."""

from sobolev.conditionals.base import Conditional
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.gaussian import GaussianConditional
from sobolev.conditionals.mixed import MixedConditional
from sobolev.conditionals.residual import ResidualConditional

__all__ = [
    "CategoricalConditional",
    "Conditional",
    "GaussianConditional",
    "MixedConditional",
    "ResidualConditional",
]
