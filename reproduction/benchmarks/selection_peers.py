"""The selectors that are compared at one false discovery rate: ours and those of other packages.

Each is a function of (X, y, seed, fdr) that returns the mask of the selected columns. Peers have
their own defaults and the settings that their documentation recommends.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import false_discovery_control
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold, train_test_split

from reproduction.benchmarks import pcm
from reproduction.benchmarks.gcm import gcm
from reproduction.benchmarks.paired import LEAST, MANY
from reproduction.benchmarks.selection_designs import FRIEDMAN, LIANG, WIDE
from reproduction.methods import N_TREES, random_forest
from sobolev import HRTSelector, KnockoffSelector

Selector = Callable[[np.ndarray, np.ndarray, int, float], np.ndarray]


@dataclass(frozen=True)
class Method:
    """A selector by name, and how many data sets it gets (``few``: by design; 0 leaves it out).

    ``package`` is the module that is imported; ``requires`` is what to install if that has another
    name.
    """

    name: str
    select: Selector
    package: str = "sobolev"
    seeds: int = 20
    few: Mapping[str, int] = field(default_factory=dict)
    why: str = ""  # why it is left out where it is
    requires: str = ""

    @property
    def distribution(self) -> str:
        """The name of the package in the registry."""
        return self.requires or self.package

    def seeds_on(self, design: str) -> int:
        return self.few.get(design, self.seeds)

    def missing(self) -> str:
        """Why the package cannot be used, or nothing. Imports it, so that this is not timed."""
        try:
            with quietly():
                importlib.import_module(self.package)
        except ImportError as error:
            return f"not installed (`pip install {self.distribution}`): {error}"
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


def hrt_lasso(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    return HRTSelector(LassoCV(), fdr=fdr, random_state=seed).fit(X, y).support_


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


def loco_folds(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    """Forests of five folds with and without each column, and the corrected t-test across them."""
    from hidimstat import LOCOCV

    folds = KFold(5, shuffle=True, random_state=seed)
    importance = LOCOCV(random_forest(N_TREES, seed), folds)
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


def fippy_cfi(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    """A forest on four fifths of the rows, ten Gaussian draws of each column on the others."""
    import pandas as pd
    from fippy import Explainer
    from fippy.losses import squared_error
    from fippy.samplers import GaussianSampler

    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    train, test, y_train, y_test = train_test_split(table, y, test_size=0.2, random_state=seed)
    forest = random_forest(N_TREES, seed).fit(train, y_train)
    with global_seed(seed):
        explainer = Explainer(
            forest.predict, train, loss=squared_error, sampler=GaussianSampler(train)
        )
        scores = explainer.cfi(test, y_test, n_repeats=10)
        varying = np.nanmean(scores.scores[0], axis=0).std(axis=0) > 0
        found = np.ones(X.shape[1])
        if varying.any():  # its test raises an error for a column that the forest does not use
            names = [name for name, each in zip(table.columns, varying, strict=True) if each]
            scores.scores = scores.scores[..., varying]
            scores.feature_names = names
            found[varying] = scores.test(method="t", alternative="greater")["p_value"]
    return false_discovery_control(found) <= fdr


def double_lasso(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    """A partially linear model for each column in turn, Benjamini-Hochberg on its p-values."""
    import doubleml

    found = np.ones(X.shape[1])
    for j in np.flatnonzero(np.ptp(X, axis=0) > 0):
        data = doubleml.DoubleMLData.from_arrays(np.delete(X, j, axis=1), y, X[:, j])
        with global_seed(seed):
            model = doubleml.DoubleMLPLR(data, ml_l=LassoCV(), ml_m=LassoCV())
            found[j] = model.fit().pval[0]
    return false_discovery_control(found) <= fdr


REFERENCE = "HRTSelector"


WHY = f"models of each of so many columns, {LEAST} data sets would take hours"


def _of(package: str, requires: str = "") -> Callable[..., Method]:
    """Makes the methods of a package."""

    def method(
        name: str, select: Selector, *, fast: bool = False, without: Sequence[str] = ()
    ) -> Method:
        few, why = dict.fromkeys(without, 0), WHY if without else ""
        return Method(name, select, package, MANY if fast else LEAST, few, why, requires)

    return method


_ours, _hidimstat, _knockpy = _of("sobolev"), _of("hidimstat"), _of("knockpy")
_sklearn = _of("sklearn", "scikit-learn")
METHODS = (
    _ours(REFERENCE, hrt, fast=True),
    _ours("HRTSelector, lasso", hrt_lasso, fast=True),
    _ours("KnockoffSelector", knockoffs, fast=True),
    _ours("KnockoffSelector, lasso", knockoffs_lasso, fast=True),
    _hidimstat("hidimstat d0CRT", d0crt(10)),
    _hidimstat("hidimstat d0CRT, no screening", d0crt(None), without=[LIANG]),
    _hidimstat("hidimstat d0CRT, forest", d0crt(None, forest=True), without=WIDE),
    _hidimstat("hidimstat knockoffs", hidimstat_knockoffs),
    _hidimstat("hidimstat CFI, forest, one split", cfi),
    _hidimstat("hidimstat CFI-CV, forest", cfi_folds, without=WIDE),
    _hidimstat("hidimstat LOCO-CV, forest", loco_folds, without=[*WIDE, *FRIEDMAN]),
    _knockpy("knockpy, lasso", knockpy("lasso"), fast=True),
    _knockpy("knockpy, random forest", knockpy("randomforest"), fast=True),
    _knockpy("knockpy, deepPINK", knockpy("deeppink"), fast=True),
    _knockpy("knockpy, masked likelihood ratio", knockpy("mlr"), fast=True),
    _knockpy("knockpy, masked likelihood ratio, splines", knockpy("mlr_spline")),
    _of("fippy")("fippy CFI, forest", fippy_cfi),
    _of("doubleml")("DoubleML, lasso", double_lasso, without=WIDE),
    _sklearn("GCM, forest", gcm, without=WIDE),
    _sklearn("PCM, forest", pcm.pcm(pcm.FOREST), without=WIDE),
    _sklearn("PCM, boosting", pcm.pcm(pcm.BOOSTING), without=WIDE),
)
