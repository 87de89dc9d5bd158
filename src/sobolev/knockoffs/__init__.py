"""Knockoffs: synthetic copies of the columns, drawn without the response (Algorithm 5)."""

from sobolev.knockoffs.base import KnockoffSampler
from sobolev.knockoffs.copula import CopulaKnockoffs
from sobolev.knockoffs.diagnostics import KnockoffDiagnostics, diagnose_knockoffs
from sobolev.knockoffs.fixed import FixedXKnockoffs
from sobolev.knockoffs.gaussian import GaussianKnockoffs
from sobolev.knockoffs.groups import solve_group_s
from sobolev.knockoffs.low_rank import LowRankKnockoffs
from sobolev.knockoffs.matched import MatchedKnockoffs
from sobolev.knockoffs.s_matrix import kkt_residual, repair_covariance, solve_s
from sobolev.knockoffs.selector import KnockoffSelector
from sobolev.knockoffs.sequential import SequentialKnockoffs
from sobolev.knockoffs.statistics import knockoff_statistics

__all__ = [
    "CopulaKnockoffs",
    "FixedXKnockoffs",
    "GaussianKnockoffs",
    "KnockoffDiagnostics",
    "KnockoffSampler",
    "KnockoffSelector",
    "LowRankKnockoffs",
    "MatchedKnockoffs",
    "SequentialKnockoffs",
    "diagnose_knockoffs",
    "kkt_residual",
    "knockoff_statistics",
    "repair_covariance",
    "solve_group_s",
    "solve_s",
]
