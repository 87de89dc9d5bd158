"""Saved estimators: files with numbers and text, and nothing that runs when they are read."""

from sobolev.storage.files import load, save

__all__ = ["load", "save"]
