"""Simulated data with known true features, and the real data of the paper."""

from sobolev.datasets.hiv import HIV_DRUGS, count_positions, load_hiv
from sobolev.datasets.plx4720 import load_plx4720
from sobolev.datasets.synthetic import make_liang, make_sine_radius, make_sinexp, make_xor

__all__ = [
    "HIV_DRUGS",
    "count_positions",
    "load_hiv",
    "load_plx4720",
    "make_liang",
    "make_sine_radius",
    "make_sinexp",
    "make_xor",
]
