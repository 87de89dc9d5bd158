"""Comparisons with peers, guarantees, time and memory."""
