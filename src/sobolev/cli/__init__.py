"""The ``sobolev`` command. Heavy imports wait until a command needs them."""

from sobolev.cli.app import app, main

__all__ = ["app", "main"]
