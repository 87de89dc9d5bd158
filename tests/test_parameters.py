"""Checks of parameters name the parameter and what it takes."""

import numpy as np
import pytest

from sobolev._parameters import check_count, check_number, check_option


@pytest.mark.parametrize("value", [0, 0.0, 2, 1e-300, np.float32(1.5), np.int8(3)])
def test_numbers_of_at_least_zero_pass(value):
    check_number("lam", value)
    if value > 0:
        check_number("lam", value, positive=True)
    else:
        with pytest.raises(ValueError, match=r"lam=0.* must be positive"):
            check_number("lam", value, positive=True)


@pytest.mark.parametrize("value", [None, "1", True, np.nan, np.inf, -np.inf, [1.0], 1j])
def test_what_is_not_a_finite_number_is_a_type_error(value):
    with pytest.raises(TypeError, match="lam must be a finite number; got"):
        check_number("lam", value)


def test_negative_numbers_are_refused():
    with pytest.raises(ValueError, match="lam=-1e-09 must be at least 0"):
        check_number("lam", -1e-9)


@pytest.mark.parametrize("value", [1, 10**12, np.int64(4), np.uint8(1)])
def test_counts_pass(value):
    check_count("n_members", value)


@pytest.mark.parametrize("value", [0, -3])
def test_counts_below_one_are_refused(value):
    with pytest.raises(ValueError, match=f"n_members={value} must be at least 1"):
        check_count("n_members", value)


@pytest.mark.parametrize("value", [1.0, True, "1", None, np.float64(2)])
def test_what_is_not_an_integer_is_a_type_error(value):
    with pytest.raises(TypeError, match="n_members must be an integer"):
        check_count("n_members", value)


def test_options_are_listed():
    check_option("schedule", "linear", {"constant": 1, "linear": 2})
    for value in ("step", None, 1, ["linear"]):
        with pytest.raises(ValueError, match=r'^schedule=.* is unknown; use "constant", "linear"'):
            check_option("schedule", value, iter(["constant", "linear"]))
