"""The version, its only source."""

__version__ = "0.1.0.dev0"
