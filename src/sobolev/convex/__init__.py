"""Convex SIC: feature maps, quadratic forms, solvers and the estimator."""

from sobolev.convex.estimator import ConvexSIC
from sobolev.convex.feature_maps import AutoMap, FourierMap, LandmarkMap, LinearMap, PolynomialMap
from sobolev.convex.path import SICPath, sic_path
from sobolev.convex.solvers import Alternating, BlockCoordinateDescent

__all__ = [
    "Alternating",
    "AutoMap",
    "BlockCoordinateDescent",
    "ConvexSIC",
    "FourierMap",
    "LandmarkMap",
    "LinearMap",
    "PolynomialMap",
    "SICPath",
    "sic_path",
]
