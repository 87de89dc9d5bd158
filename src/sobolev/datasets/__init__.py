"""Data with known answers."""

from sobolev.datasets.synthetic import make_liang, make_sine_radius, make_sinexp, make_xor

__all__ = ["make_liang", "make_sine_radius", "make_sinexp", "make_xor"]
