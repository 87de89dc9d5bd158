"""Warnings and errors of the package."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning


class SobolevWarning(UserWarning):
    """Base class of all warnings of the package."""


class ConvergenceWarning(SobolevWarning, _SklearnConvergenceWarning):
    """An iterative solver stopped before it converged."""


class DataWarning(SobolevWarning):
    """Part of the data carries no information, such as constant or collinear columns."""


class ConstantColumnWarning(DataWarning):
    """Some columns are constant; they get importance zero and cannot be selected."""


class ConditionalModelWarning(SobolevWarning):
    """The model of a column given the others does not fit; p-values may be too small."""


class KnockoffModelWarning(SobolevWarning):
    """Knockoffs do not match their columns; the false discovery rate may exceed its level."""


class TargetError(ValueError):
    """The response cannot be encoded: a single class, a constant, or a label not seen in fit."""


class DivergenceError(ArithmeticError):
    """Training diverged: the loss of a network is not finite."""


__all__ = [
    "ConditionalModelWarning",
    "ConstantColumnWarning",
    "ConvergenceWarning",
    "DataWarning",
    "DivergenceError",
    "KnockoffModelWarning",
    "SobolevWarning",
    "TargetError",
]
