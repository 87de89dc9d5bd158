"""Inference on top of SIC: tests with controlled error rates."""

from sobolev.inference.hrt import HRTResult, HRTSelector, hrt_test
from sobolev.inference.independence import SICTestResult, sic_test
from sobolev.inference.trial import Forward, Split

__all__ = ["Forward", "HRTResult", "HRTSelector", "SICTestResult", "Split", "hrt_test", "sic_test"]
