"""Tests with controlled error rates: Algorithm 4, the test of independence, multiple testing."""

from sobolev.inference.hrt import HRTResult, HRTSelector, hrt_test
from sobolev.inference.independence import SICTestResult, sic_test
from sobolev.inference.schemes import Forward, MonteCarlo, Split

__all__ = [
    "Forward",
    "HRTResult",
    "HRTSelector",
    "MonteCarlo",
    "SICTestResult",
    "Split",
    "hrt_test",
    "sic_test",
]
