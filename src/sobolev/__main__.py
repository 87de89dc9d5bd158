"""``python -m sobolev`` is the ``sobolev`` command."""

from sobolev.cli import main

if __name__ == "__main__":
    main()
