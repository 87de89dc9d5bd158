"""The warnings and errors of the package: doubts about statistics or optimisation."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning


class SobolevWarning(UserWarning):
    """Base of every warning that the package raises."""


class ConvergenceWarning(SobolevWarning, _SklearnConvergenceWarning):
    """The solver stopped at ``max_iter`` before the fixed point was reached."""


class DataWarning(SobolevWarning):
    """Part of the data carries no information: constant columns, rows of zero weight."""


class DivergenceError(ArithmeticError):
    """Training broke down: the loss of a network is no longer finite."""


__all__ = ["ConvergenceWarning", "DataWarning", "DivergenceError", "SobolevWarning"]
