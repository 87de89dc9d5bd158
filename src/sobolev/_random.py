"""Random generators: every ``random_state`` of the package passes through here."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

RandomState = int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None


def check_generator(random_state: RandomState = None) -> np.random.Generator:
    """Turn a ``random_state`` into a generator, leaving numpy's global generator alone.

    Parameters
    ----------
    random_state : int, SeedSequence, Generator, RandomState or None
        An int or a SeedSequence always gives the same generator, None a fresh one. A Generator is
        returned as it is. A RandomState seeds the generator with one draw, so it moves on.

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> from sobolev._random import check_generator
    >>> check_generator(0).integers(10, size=3)
    array([8, 6, 5])
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if random_state is None or isinstance(random_state, np.random.SeedSequence):
        return np.random.default_rng(random_state)
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ValueError(f"random_state={random_state} is negative; pass an integer >= 0.")
        return np.random.default_rng(int(random_state))
    raise TypeError(
        "random_state must be an int, a numpy Generator, RandomState or SeedSequence, or None; "
        f"got {type(random_state).__name__}."
    )


def seeded(model: Any, rng: np.random.Generator) -> Any:
    """A copy of an estimator whose open random states are set, so that a fit can be repeated.

    Parts of a pipeline are set, too: one left open would draw from the global generator.
    """
    model = clone(model)
    for name, value in sorted(model.get_params().items()):
        if name.split("__")[-1] == "random_state" and value is None:
            model.set_params(**{name: int(rng.integers(2**31))})
    return model


def spawn(random_state: RandomState, n: int) -> list[np.random.Generator]:
    """Make ``n`` independent generators, one for each task.

    Draw them before the tasks are handed out: what task i draws then depends neither on the other
    tasks nor on the number of workers. A Generator remembers how many children it has, so
    spawning from it twice gives different ones.

    Parameters
    ----------
    random_state : int, SeedSequence, Generator, RandomState or None
        See :func:`check_generator`.
    n : int
        The number of generators.

    Returns
    -------
    list of numpy.random.Generator

    Examples
    --------
    >>> from sobolev._random import spawn
    >>> [int(rng.integers(100)) for rng in spawn(0, 3)]
    [80, 66, 65]
    """
    return check_generator(random_state).spawn(n)
