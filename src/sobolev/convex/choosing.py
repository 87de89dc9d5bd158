"""Which feature map: by name, by the number of rows, or several by held-out risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Any, ClassVar

import numpy as np

from sobolev._parameters import check_option
from sobolev._typing import Array
from sobolev.convex.feature_maps import (
    CustomMap,
    FeatureMap,
    FourierMap,
    LandmarkMap,
    LinearMap,
    MapSpec,
    PolynomialMap,
    SizedMap,
)
from sobolev.convex.fitting import row_risk
from sobolev.convex.parts import PartsMap

# With more rows, an iteration with landmarks costs more than one with Fourier features and does
# not rank better.
AUTO_FOURIER_ROWS = 5000
# A map leaves the contest if it is worse than the best by so many standard errors over folds.
CLEARLY = 2.0


@dataclass(frozen=True)
class AutoMap(SizedMap):
    """Landmarks up to 5,000 rows, Fourier features for more; ``feature_map="auto"``.

    Parameters
    ----------
    n_components : int or None, default=None
        Largest number of landmarks (None: 1,000) or number of Fourier features (None: 1,024).
    scores : bool, default=False
        Whether columns with heavy tails enter as normal scores of their ranks.
    """

    def choose(self, n_rows: int) -> MapSpec:
        """The map for a number of rows."""
        kind = LandmarkMap if n_rows <= AUTO_FOURIER_ROWS else FourierMap
        return kind(self.n_components, scores=self.scores)


@dataclass(frozen=True)
class BestMap(SizedMap):
    """The maps of good held-out risk: linear, parts or landmarks; ``feature_map="best"``.

    Each map is cross-validated with its own lam, and those that are clearly worse are left out. The
    critic is the mean of the others; in the refits of a test it is the weighted mean that would
    have done best on the rows tested so far. More than 5,000 rows get Fourier features.

    Parameters
    ----------
    n_components : int or None, default=None
        Largest number of landmarks (None: 1,000) or number of Fourier features (None: 1,024).
    scores : bool, default=False
        Whether columns with heavy tails enter as normal scores of their ranks.
    """

    screens: ClassVar[bool] = True

    def choose(self, n_rows: int) -> MapSpec:
        """The map itself, or Fourier features for many rows."""
        if n_rows <= AUTO_FOURIER_ROWS:
            return self
        return FourierMap(self.n_components, scores=self.scores)

    @property
    def rivals(self) -> tuple[MapSpec, ...]:
        """The maps that are compared, the simplest first."""
        return (
            LinearMap(),
            PartsMap(scores=self.scores),
            LandmarkMap(self.n_components, scores=self.scores),
        )


@dataclass(frozen=True)
class Rival:
    """A map with its lam, and its held-out risk so far.

    Attributes
    ----------
    map : MapSpec
    lam : float
    risk : float
        Mean risk of rows that the critic had not seen.
    n_rows : float
        Number of these rows, each counted by its weight.
    critic : callable, optional
        The critic h of the last fit: standardised rows to (n, k).
    """

    map: MapSpec
    lam: float
    risk: float
    n_rows: float
    critic: Any = field(default=None, compare=False)

    def judged(self, risks: Array, weights: Array) -> Rival:
        """The rival after further held-out rows, with weights of mean one."""
        total = self.risk * self.n_rows + float(weights @ risks)
        n_rows = self.n_rows + float(weights.sum())
        return replace(self, risk=total / n_rows, n_rows=n_rows)


@dataclass(frozen=True)
class Contest:
    """Maps that may be best, and what rows that their critics had not seen say of mixtures.

    The mean risk of a sum w_1 h_1 + ... of critics is w'a - rho/2 w'Bw, where a_k is the mean of
    h_k'psi and B_kl that of h_k'h_l.

    Attributes
    ----------
    rivals : tuple of Rival
    a, B : arrays of shape (K,) and (K, K), or None
        Sums over the rows since the maps were compared, each counted by its weight.
    """

    rivals: tuple[Rival, ...]
    a: Array | None = None
    B: Array | None = None

    @property
    def best(self) -> Rival:
        """The rival of the largest held-out risk; of equal ones the first."""
        return max(self.rivals, key=lambda rival: rival.risk)

    def with_critics(self, critics: Sequence[Any]) -> Contest:
        """The same with the critics of a fit."""
        both = zip(self.rivals, critics, strict=True)
        return replace(self, rivals=tuple(replace(rival, critic=critic) for rival, critic in both))

    def with_lams(self, factor: float) -> Contest:
        """The same with other values of lam."""
        return replace(self, rivals=tuple(replace(r, lam=factor * r.lam) for r in self.rivals))

    def judged(self, x: Array, psi: Array, weights: Array, rho: float) -> Contest:
        """The contest after further held-out rows, with weights of mean one."""
        h = np.array([rival.critic(x) for rival in self.rivals])
        a = np.einsum("Knk,nk,n->K", h, psi, weights)
        B = np.einsum("Knk,Lnk,n->KL", h, h, weights, optimize=True)
        if self.a is not None and self.B is not None:
            a, B = self.a + a, self.B + B
        both = zip(self.rivals, h, strict=True)
        rivals = [rival.judged(row_risk(own, psi, rho), weights) for rival, own in both]
        return Contest(tuple(rivals), a, B)

    def weights(self, rho: float) -> Array:
        """Weights of the critics, not negative and of sum one: equal, or of the largest risk."""
        size = len(self.rivals)
        best, found = -np.inf, np.full(size, 1 / size)
        if self.a is None or self.B is None:
            return found
        for used in chain.from_iterable(combinations(range(size), k + 1) for k in range(size)):
            own = list(used)
            a, B, one = self.a[own], rho * self.B[np.ix_(own, own)], np.ones((len(own), 1))
            system = np.block([[B, one], [one.T, np.zeros((1, 1))]])
            w = np.linalg.lstsq(system, np.append(a, 1.0), rcond=None)[0][:-1]
            gain = w @ a - 0.5 * w @ B @ w
            if w.min() >= 0 and gain > best:
                best, found = gain, np.bincount(own, w, minlength=size)
        return found


def still_open(rivals: Sequence[Rival], folds: Sequence[Array]) -> list[Rival]:
    """The rivals that are not clearly worse than the best.

    Parameters
    ----------
    rivals : sequence of Rival
    folds : sequence of arrays of shape (n_folds,)
        Held-out risk of each rival in each fold.
    """
    best = int(np.argmax([rival.risk for rival in rivals]))
    kept = []
    for rival, risks in zip(rivals, folds, strict=True):
        loss = folds[best] - risks
        error = loss.std(ddof=1) / np.sqrt(loss.size) if loss.size > 1 else np.inf
        if rival is rivals[best] or loss.mean() <= CLEARLY * error:
            kept.append(rival)
    return kept


NAMED_MAPS: dict[str, type[MapSpec]] = {
    "auto": AutoMap,
    "landmark": LandmarkMap,
    "fourier": FourierMap,
    "linear": LinearMap,
    "polynomial": PolynomialMap,
    "parts": PartsMap,
    "best": BestMap,
}


def resolve_feature_map(feature_map: Any, n_rows: int, single: bool = False) -> MapSpec:
    """The map of a parameter ``feature_map``.

    Parameters
    ----------
    feature_map : str or object
        A name, one of this module's maps, or a user's own object with ``values`` and
        ``derivative``.
    n_rows : int
        Number of rows, for "auto".
    single : bool, default=False
        Whether Fourier features have single precision.
    """
    spec = feature_map
    if isinstance(spec, str):
        check_option("feature_map", spec, NAMED_MAPS)
        spec = NAMED_MAPS[spec]()
    if isinstance(spec, (AutoMap, BestMap)):
        spec = spec.choose(n_rows)
    if isinstance(spec, FourierMap) and single:
        return replace(spec, single=True)
    if isinstance(spec, MapSpec):
        return spec
    if isinstance(spec, FeatureMap):
        return CustomMap(spec)
    raise TypeError(
        "feature_map must be a name or an object with values(X) and derivative(X, j); "
        f"got {type(spec).__name__}."
    )
