"""Convex SIC: feature maps, quadratic forms, solvers and the estimator."""

from sobolev.convex.choosing import AutoMap, BestMap
from sobolev.convex.estimator import ConvexSIC
from sobolev.convex.feature_maps import FourierMap, LandmarkMap, LinearMap, PolynomialMap
from sobolev.convex.parts import PartsMap
from sobolev.convex.path import SICPath, sic_path
from sobolev.convex.solvers import Alternating, BlockCoordinateDescent

__all__ = [
    "Alternating",
    "AutoMap",
    "BestMap",
    "BlockCoordinateDescent",
    "ConvexSIC",
    "FourierMap",
    "LandmarkMap",
    "LinearMap",
    "PartsMap",
    "PolynomialMap",
    "SICPath",
    "sic_path",
]
