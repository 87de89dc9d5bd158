"""The parts of a neural estimator: how it is trained, when it stops, how many members it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, pi
from typing import Any

import numpy as np

from sobolev._parameters import check_count, check_fraction, check_number, check_option

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1 + cos(pi * done)),
}

# A round before the last has this share of the updates of the last.
ROUND_SHARE = 0.25


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when the risk of held-out rows no longer grows, and keep the best iterate.

    Every member holds out other rows.

    Parameters
    ----------
    validation_fraction : float, default=0.2
        Share of held-out rows.
    patience : int, default=10
        Number of checks of the held-out risk without progress before stopping. There are about 40
        checks in ``max_iter`` updates.
    """

    validation_fraction: float = 0.2
    patience: int = 10

    def __post_init__(self) -> None:
        check_fraction("validation_fraction", self.validation_fraction, low=0.0, high=0.5)
        check_count("patience", self.patience)


@dataclass(frozen=True)
class Boosting:
    """Boosted SIC: importances averaged over several members.

    Parameters
    ----------
    n_members : int, default=1
        Number of members for each critic and batch size.
    aggregate : {"arithmetic", "geometric"}, default="arithmetic"
        Mean of the members' importances.
    """

    n_members: int = 1
    aggregate: str = "arithmetic"

    def __post_init__(self) -> None:
        check_count("n_members", self.n_members)
        check_option("aggregate", self.aggregate, ["arithmetic", "geometric"])


@dataclass(frozen=True)
class Optimizer:
    """Adam on the weights and mirror descent on the importances (Algorithm 3 of the paper).

    Parameters
    ----------
    learning_rate : float, default=1e-3
        Step size of Adam.
    betas : tuple of two floats, default=(0.5, 0.999)
        Decay rates of Adam's moments.
    weight_decay : float, default=1e-4
        Weight decay.
    schedule : {"constant", "linear", "cosine"}, default="constant"
        Schedule of the learning rate.
    batch_size : int or list of int, default=100
        Number of rows of a minibatch. With a list, Boosted SIC trains members for each size.
    max_iter : int, default=1000
        Number of updates in the last round.
    rounds : int, default=4
        Number of rounds. After each round the columns are rescaled by their importance and the
        critic is trained afresh. 1 is the paper. Earlier rounds have a quarter of ``max_iter``
        updates.
    epsilon : float, default=1e-12
        Perturbation that keeps importances positive.
    eta_step : float, default=0.1
        Step size of the mirror descent on the importances.
    eta_rule : {"averaged", "mirror"}, default="averaged"
        "mirror" is the paper: each step follows the gradient of its minibatch, and the last eta
        gives the importances. "averaged" averages the squared gradients over about 100 updates,
        makes the step free of units, and computes the importances of the trained critic on all
        rows.
    early_stopping : None or EarlyStopping, default=None
        When to stop before ``max_iter`` updates.
    gradient : {"auto", "closed", "autograd"}, default="auto"
        How the gradient penalty is differentiated: in closed form (the built-in critics), or by
        double back-propagation in PyTorch (modules of your own).
    device : str, default="auto"
        "cpu", "cuda", "cuda:1" or "mps". "auto" trains the built-in critics on the CPU with numpy,
        without importing PyTorch, and uses a GPU, if there is one, where PyTorch is needed anyway:
        for a module of your own and for ``gradient="autograd"``.
    warm_start : bool, default=False
        Whether a fit continues from the critics and importances of the last fit, with one round.

    Examples
    --------
    >>> from sobolev.neural import EarlyStopping, Optimizer
    >>> Optimizer(max_iter=500, early_stopping=EarlyStopping(patience=5)).early_stopping
    EarlyStopping(validation_fraction=0.2, patience=5)
    """

    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.5, 0.999)
    weight_decay: float = 1e-4
    schedule: str = "constant"
    batch_size: int | Sequence[int] = 100
    max_iter: int = 1000
    rounds: int = 4
    epsilon: float = 1e-12
    eta_step: float = 0.1
    eta_rule: str = "averaged"
    early_stopping: EarlyStopping | None = None
    gradient: str = "auto"
    device: Any = "auto"
    warm_start: bool = False

    def __post_init__(self) -> None:
        for name in ("epsilon", "learning_rate"):
            check_number(name, getattr(self, name), positive=True)
        for name in ("weight_decay", "eta_step"):
            check_number(name, getattr(self, name))
        for name in ("max_iter", "rounds"):
            check_count(name, getattr(self, name))
        if not self.batch_sizes:
            raise ValueError("batch_size is empty; give it at least one size.")
        for size in self.batch_sizes:
            check_count("batch_size", size)
        betas = np.atleast_1d(np.asarray(self.betas, dtype=object))
        if betas.size != 2:
            raise ValueError(f"betas={self.betas!r} must be two numbers in [0, 1).")
        for beta in betas:
            check_fraction("betas", beta, low=0.0, high=1.0, closed="left")
        check_option("schedule", self.schedule, SCHEDULES)
        check_option("eta_rule", self.eta_rule, ["averaged", "mirror"])
        check_option("gradient", self.gradient, ["auto", "closed", "autograd"])
        if not isinstance(self.early_stopping, EarlyStopping | None):
            raise TypeError(
                f"early_stopping must be None or an EarlyStopping(); got {self.early_stopping!r}."
            )

    @classmethod
    def paper(cls, **parameters: Any) -> Optimizer:
        """The settings of the paper: 4,000 updates, one round, the mirror rule."""
        paper: dict[str, Any] = {"max_iter": 4000, "rounds": 1, "epsilon": 1e-6}
        return cls(**(paper | {"eta_rule": "mirror"} | parameters))

    @property
    def batch_sizes(self) -> list[Any]:
        """The batch sizes as a list."""
        return list(np.atleast_1d(np.asarray(self.batch_size, dtype=object)))

    @property
    def mirror(self) -> bool:
        """Whether the importances follow the rule of the paper."""
        return self.eta_rule == "mirror"

    @property
    def round_updates(self) -> int:
        """Number of updates of a round before the last."""
        return max(1, round(ROUND_SHARE * self.max_iter))

    @property
    def total_updates(self) -> int:
        """Number of updates of all rounds."""
        return self.max_iter + (self.rounds - 1) * self.round_updates

    def rate(self, done: float) -> float:
        """The learning rate after a share of the updates."""
        return self.learning_rate * SCHEDULES[self.schedule](done)
