"""Inference on top of SIC: tests with controlled error rates."""

from sobolev.inference.hrt import HRTResult, HRTSelector, hrt_test
from sobolev.inference.independence import SICTestResult, sic_test

__all__ = ["HRTResult", "HRTSelector", "SICTestResult", "hrt_test", "sic_test"]
