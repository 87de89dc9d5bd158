"""Random generators from the parameters ``random_state`` of the package."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

RandomState = int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None


def check_generator(random_state: RandomState = None) -> np.random.Generator:
    """Turn a ``random_state`` into a generator; numpy's global generator is not used.

    Parameters
    ----------
    random_state : int, SeedSequence, Generator, RandomState or None
        Source of randomness. An int or a SeedSequence always gives the same generator, None a new
        one. A Generator is returned as it is. A RandomState seeds the generator with one draw,
        which advances its state.

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
    """Copy an estimator and set every ``random_state`` that is None, so that fits are repeatable.

    The steps of a pipeline are included, since they would otherwise use the global generator.
    """
    model = clone(model)
    for name, value in sorted(model.get_params().items()):
        if name.split("__")[-1] == "random_state" and value is None:
            model.set_params(**{name: int(rng.integers(2**31))})
    return model


def spawn(random_state: RandomState, n: int) -> list[np.random.Generator]:
    """Create ``n`` independent generators, one for each task.

    If they are created before the tasks start, the random numbers of a task depend neither on the
    other tasks nor on the number of workers. A Generator counts its children, so that spawning
    from it twice gives different ones.

    Parameters
    ----------
    random_state : int, SeedSequence, Generator, RandomState or None
        Source of randomness, see :func:`check_generator`.
    n : int
        Number of generators.

    Returns
    -------
    list of numpy.random.Generator
        The generators.

    Examples
    --------
    >>> from sobolev._random import spawn
    >>> [int(rng.integers(100)) for rng in spawn(0, 3)]
    [80, 66, 65]
    """
    return check_generator(random_state).spawn(n)
