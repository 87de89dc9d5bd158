"""``python -m sobolev.cli``."""

from sobolev.cli.app import main

main()
