"""Validation of parameters; every message names the parameter and its valid values."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Raise an error unless the value is a finite number, positive or at least zero."""
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(float(value)):
        raise TypeError(f"{name} must be a finite number; got {value!r}.")
    if value < 0 or (positive and value == 0):
        raise ValueError(f"{name}={value} must be {'positive' if positive else 'at least 0'}.")


def check_count(name: str, value: Any, low: int = 1) -> None:
    """Raise an error unless the value is an integer of at least ``low``."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer; got {value!r}.")
    if value < low:
        raise ValueError(f"{name}={value} must be at least {low}.")


def check_option(name: str, value: Any, options: Iterable[str]) -> None:
    """Raise an error unless the value is one of the options."""
    options = list(options)
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(f'"{option}"' for option in options)
        raise ValueError(f"{name}={value!r} is unknown; use {listed}.")


def check_fraction(
    name: str, value: Any, *, low: float, high: float, closed: str = "right"
) -> None:
    """Raise an error unless the value lies in (low, high], or in [low, high)."""
    left, right = ("[", ")") if closed == "left" else ("(", "]")
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(
            f"{name} must be a number in {left}{low:g}, {high:g}{right}; got {value!r}."
        )
    number = float(value)
    inside = low <= number < high if closed == "left" else low < number <= high
    if not inside:
        raise ValueError(f"{name}={value!r} must lie in {left}{low:g}, {high:g}{right}.")
