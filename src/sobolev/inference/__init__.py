"""Inference on top of SIC: tests with controlled error rates."""

from sobolev.inference.independence import SICTestResult, sic_test

__all__ = ["SICTestResult", "sic_test"]
