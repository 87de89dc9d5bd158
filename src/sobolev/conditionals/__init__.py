"""Models of one column given the others, from which the holdout randomization test draws."""

from sobolev.conditionals.base import Conditional
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.choice import AutoConditional
from sobolev.conditionals.diagnostics import (
    ConditionalDiagnostics,
    diagnose_conditional,
    warn_if_misfit,
)
from sobolev.conditionals.forest import ForestConditional
from sobolev.conditionals.gaussian import GaussianConditional
from sobolev.conditionals.joint import JointConditional
from sobolev.conditionals.mixed import MixedConditional
from sobolev.conditionals.neural import NeuralConditional
from sobolev.conditionals.residual import ResidualConditional

__all__ = [
    "AutoConditional",
    "CategoricalConditional",
    "Conditional",
    "ConditionalDiagnostics",
    "ForestConditional",
    "GaussianConditional",
    "JointConditional",
    "MixedConditional",
    "NeuralConditional",
    "ResidualConditional",
    "diagnose_conditional",
    "warn_if_misfit",
]
