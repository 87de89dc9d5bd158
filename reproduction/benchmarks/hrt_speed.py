"""Time of the holdout randomization test beside a plain loop over resamples."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.benchmarks import plx4720_data as plx4720
from reproduction.engine import Record
from reproduction.methods import random_forest
from reproduction.timing import alternate
from sobolev import ConvexSIC, HRTSelector, NeuralSIC
from sobolev.conditionals import MixedConditional
from sobolev.datasets import make_sinexp
from sobolev.inference.replacements import null_table

N_ROUNDS = 1000


def plain_loop(
    model: Any,
    conditional: Any,
    X: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    columns: Any,
    n_rounds: int,
) -> np.ndarray:
    """What the test is by its definition: draw the column, evaluate all rows, count."""
    pvalues = []
    observed = model.risk(X, y).mean()
    for j in columns:
        drawn = conditional.sample(X, int(j), n_rounds, random_state=int(j), rows=rows)
        reached = 0
        for column in drawn.T:
            moved = X.copy()
            moved[:, j] = column
            reached += model.risk(moved, y).mean() >= observed
        pvalues.append((1 + reached) / (1 + n_rounds))
    return np.array(pvalues)


def tabulated(
    model: Any, conditional: Any, X: np.ndarray, y: np.ndarray, rows: np.ndarray, columns: Any
) -> np.ndarray:
    """The same p-values from tables and the saddlepoint, as ``HRTSelector`` finds them."""
    evaluator = model.evaluator(X, y, "risk")
    grids = ((j, conditional.distribution(X, int(j), rows)) for j in columns)
    return np.array([null_table(evaluator, j, X[:, j], *g).saddlepoint() for j, g in grids])


def tables(name: str, quick: bool) -> Record:
    """Twenty columns of SinExp: tables and saddlepoint beside the plain loop."""
    n, timed, n_columns = (100, 2, 3) if quick else (500, 10, 20)
    X, y = make_sinexp(n_samples=2 * n, random_state=0, return_X_y=True)
    estimator = ConvexSIC() if name == "ConvexSIC" else NeuralSIC(random_state=0)
    model = estimator.fit(X[:n], y[:n])
    conditional = MixedConditional().fit(X)
    columns = np.argsort(-model.feature_importances_)[:n_columns]
    holdout = (X[n:], y[n:], np.arange(n, 2 * n))
    ours, theirs = alternate(
        lambda: tabulated(model, conditional, *holdout, columns),
        lambda: plain_loop(model, conditional, *holdout, columns, timed),
        repeats=1 if quick else 3,
    )
    return {
        "what": f"tests of {n_columns} columns with {name}, {n} held-out rows of SinExp, with "
        "a fitted conditional model",
        "peer": f"plain loop of {N_ROUNDS} resamples ({timed} timed, scaled)",
        "ours": ours,
        "theirs": [t * N_ROUNDS / timed for t in theirs],
        "notes": {},
    }


def sinexp(scheme: str, quick: bool) -> Record:
    """Fit and test of a whole data set beside a random forest."""
    n, n_trees = (60, 20) if quick else (500, 500)
    X, y = make_sinexp(n_samples=2 * n, random_state=0, return_X_y=True)
    selector = HRTSelector(scheme=scheme, shortlist=20, random_state=0)
    ours, theirs = alternate(
        lambda: selector.fit(X, y),
        lambda: random_forest(n_trees, 0).fit(X, y),
        repeats=1 if quick else 3,
    )
    return {
        "what": f'HRTSelector(scheme="{scheme}"), fit and tests of 20 columns, SinExp '
        f"{n} + {n} × {X.shape[1]}",
        "peer": f"random forest, {n_trees} trees, fitted to the same rows",
        "ours": ours,
        "theirs": theirs,
        "notes": {"selected": int(selector.support_.sum())},
    }


def wide(quick: bool) -> Record:
    """The plx4720 data with 200 tested columns."""
    n_features, n_tested, n_trees, stands_for = (
        (300, 10, 10, 100) if quick else (None, 200, 50, 500)
    )
    X, y, braf = plx4720.load(n_features)
    selector = HRTSelector(shortlist=n_tested, scheme="split", random_state=0)
    ours, theirs = alternate(
        lambda: selector.fit(X, y),
        lambda: random_forest(n_trees, 0).fit(X, y),
        repeats=1,
    )
    return {
        "what": f'HRTSelector(scheme="split") on plx4720 {X.shape[0]} × {X.shape[1]} (substitute '
        f"for the paper's matrix), {n_tested} columns tested",
        "peer": f"random forest, {stands_for} trees ({n_trees} timed, scaled)",
        "ours": ours,
        "theirs": [t * stands_for / n_trees for t in theirs],
        "notes": {
            "p-value of the BRAF mutation": f"{selector.pvalues_[braf]:.2g}",
            "selected at 10 %": int(selector.support_.sum()),
        },
    }
