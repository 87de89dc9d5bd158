"""The selectors that are compared at one false discovery rate: ours, hidimstat's and knockpy's.

Each is a function of (X, y, seed, fdr) that returns the mask of the selected columns. Peers have
their own defaults and the settings that their documentation recommends.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field

import numpy as np
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold

from reproduction.methods import N_TREES, random_forest
from sobolev import HRTSelector, KnockoffSelector

Selector = Callable[[np.ndarray, np.ndarray, int, float], np.ndarray]


@dataclass(frozen=True)
class Method:
    """A selector by name, and how many data sets it gets (``few``: by design; 0 leaves it out)."""

    name: str
    select: Selector
    package: str = "sobolev"
    seeds: int = 20
    few: Mapping[str, int] = field(default_factory=dict)
    why: str = ""  # why it is left out where it is

    def seeds_on(self, design: str) -> int:
        return self.few.get(design, self.seeds)

    def missing(self) -> str:
        """Why the package cannot be used, or nothing. Imports it, so that this is not timed."""
        try:
            with quietly():
                importlib.import_module(self.package)
        except ImportError as error:
            return f"not installed (`pip install {self.package}`): {error}"
        return ""


@contextmanager
def quietly() -> Iterator[None]:
    """Nothing is printed: peers report every step."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed numpy's global generator, which some peers draw from, and put it back."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def hrt(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    return HRTSelector(fdr=fdr, random_state=seed).fit(X, y).support_


def knockoffs(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    return KnockoffSelector(fdr=fdr, random_state=seed).fit(X, y).support_


def knockoffs_lasso(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    selector = KnockoffSelector(LassoCV(), fdr=fdr, random_state=seed)
    return selector.fit(X, y).support_


def d0crt(screening: float | None, *, forest: bool = False) -> Selector:
    """The distilled test with a lasso or a forest, and Benjamini-Hochberg on its p-values."""

    def select(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
        from hidimstat import D0CRT

        estimator = random_forest(N_TREES, seed) if forest else LassoCV()
        # With a screening it distils y by the lasso of the screening, whatever the estimator.
        test = D0CRT(estimator, screening_threshold=screening, random_state=seed)
        test.fit_importance(X, y)
        return test.fdr_selection(fdr) != 0

    return select


def hidimstat_knockoffs(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    from hidimstat import ModelXKnockoff

    selector = ModelXKnockoff(random_state=seed)
    selector.fit_importance(X, y)
    return np.asarray(selector.fdr_selection(fdr), dtype=bool)


def cfi(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    """A forest on one half, conditional importances and their t-test on the other."""
    from hidimstat import CFI

    order = np.random.default_rng([seed, 1]).permutation(y.size)
    train, test = order[: y.size // 2], order[y.size // 2 :]
    forest = random_forest(N_TREES, seed).fit(X[train], y[train])
    importance = CFI(forest, random_state=seed)
    importance.fit(X[train], y[train])
    importance.importance(X[test], y[test])
    return importance.fdr_selection(fdr) != 0


def cfi_folds(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    """Forests of five folds and the corrected t-test across them."""
    from hidimstat import CFICV

    folds = KFold(5, shuffle=True, random_state=seed)
    importance = CFICV(random_forest(N_TREES, seed), folds, random_state=seed)
    importance.fit_importance(X, y)
    return importance.fdr_selection(fdr) != 0


def knockpy(statistic: str) -> Selector:
    """Gaussian knockoffs with one of knockpy's statistics."""

    def select(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
        from knockpy.knockoff_filter import KnockoffFilter

        with global_seed(seed):
            if statistic != "deeppink":
                return KnockoffFilter(statistic, "gaussian").forward(X, y, fdr=fdr).astype(bool)
            import torch

            with torch.random.fork_rng():
                torch.manual_seed(seed)
                return KnockoffFilter(statistic, "gaussian").forward(X, y, fdr=fdr).astype(bool)

    return select


REFERENCE = "HRTSelector"
LIANG = "Liang, 40 of 500, n = 500"
SLOW = "to keep the whole run under an hour"
METHODS = (
    Method(REFERENCE, hrt),
    Method("KnockoffSelector", knockoffs),
    Method("KnockoffSelector, lasso", knockoffs_lasso),
    Method("hidimstat d0CRT", d0crt(10), "hidimstat", 20, {LIANG: 2}),
    Method("hidimstat d0CRT, no screening", d0crt(None), "hidimstat", 4, {LIANG: 0}, SLOW),
    Method("hidimstat d0CRT, forest", d0crt(None, forest=True), "hidimstat", 3, {LIANG: 0}, SLOW),
    Method("hidimstat knockoffs", hidimstat_knockoffs, "hidimstat", 8, {LIANG: 2}),
    Method("hidimstat CFI, forest, one split", cfi, "hidimstat", 10, {LIANG: 2}),
    Method("hidimstat CFI, forest, five folds", cfi_folds, "hidimstat", 4, {LIANG: 0}, SLOW),
    Method("knockpy, lasso", knockpy("lasso"), "knockpy"),
    Method("knockpy, random forest", knockpy("randomforest"), "knockpy", 20, {LIANG: 10}),
    Method("knockpy, deepPINK", knockpy("deeppink"), "knockpy", 10, {LIANG: 3}),
)
