"""Convex SIC: feature maps, quadratic forms, solvers and the estimator."""

from sobolev.convex.estimator import ConvexSIC
from sobolev.convex.feature_maps import FourierMap, LandmarkMap, LinearMap, PolynomialMap
from sobolev.convex.path import SICPath, sic_path

__all__ = [
    "ConvexSIC",
    "FourierMap",
    "LandmarkMap",
    "LinearMap",
    "PolynomialMap",
    "SICPath",
    "sic_path",
]
