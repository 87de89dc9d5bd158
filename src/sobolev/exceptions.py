"""The warnings and errors of the package: doubts about statistics or optimisation."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning


class SobolevWarning(UserWarning):
    """Base of every warning that the package raises."""


class ConvergenceWarning(SobolevWarning, _SklearnConvergenceWarning):
    """The solver stopped at ``max_iter`` before the fixed point was reached."""


class DataWarning(SobolevWarning):
    """Part of the data carries no information: constant columns, rows of zero weight."""


class ConstantColumnWarning(DataWarning):
    """Some columns are constant and get importance zero."""


class ConditionalModelWarning(SobolevWarning):
    """The model of a column given the others does not fit: p-values may be too small."""


class KnockoffModelWarning(SobolevWarning):
    """Knockoffs do not look like their columns: the false discovery rate may be exceeded."""


class TargetError(ValueError):
    """The response cannot be encoded: one class only, a constant, or a label unknown to the fit."""


class DivergenceError(ArithmeticError):
    """Training broke down: the loss of a network is no longer finite."""


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
