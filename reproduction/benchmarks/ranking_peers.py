"""The peers of the ranking benchmark: a small function for each, (X, y, seed) to scores.

Settings are those that the peer's own documentation uses or names as defaults; ``quick`` cuts them
to what shows that the peer runs. Labels are text, responses are numbers.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import functools
import importlib
import io
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from reproduction.benchmarks.paired import LEAST, MANY

Scores = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Peer:
    """A way to score columns.

    ``package`` is what to install, ``module`` what it imports, ``most`` bounds the number of seeds.
    """

    name: str
    scores: Scores
    note: str
    package: str = "scikit-learn"
    module: str = "sklearn"
    most: int = MANY


def has_labels(y: np.ndarray) -> bool:
    """Whether the response is classes."""
    return y.dtype.kind == "U"


def missing(peer: Peer) -> str | None:
    """Why a peer cannot run here; None if it can."""
    try:
        importlib.import_module(peer.module)
    except ModuleNotFoundError as error:
        if error.name == peer.module:
            return f"{peer.package} is not installed"
        return f"{peer.package} does not import: {error}"
    except Exception as error:  # a peer may fail to import in any way
        return f"{peer.package} does not import: {type(error).__name__}: {error}"
    return None


@functools.cache
def version(peer: Peer) -> str:
    """What is installed under the name of the module, and its version, for the records."""
    package = metadata.packages_distributions().get(peer.module, [peer.package])[0]
    return f"{package} {metadata.version(package)}"


@functools.cache
def warm_up(peer: Peer) -> None:
    """Rank a few rows: some packages import much at their first fit only."""
    X = np.random.default_rng(0).standard_normal((60, 12))
    with contextlib.suppress(Exception):  # the fit that counts tells
        peer.scores(X, X[:, 0], 0, quick=True)


def standardized(X: np.ndarray) -> np.ndarray:
    """Columns, or a response, with mean zero and variance one."""
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def codes(y: np.ndarray) -> np.ndarray:
    """Labels as whole numbers from zero."""
    return np.unique(y, return_inverse=True)[1]


# -- scikit-learn --------------------------------------------------------------------------------


def mutual_information(X: np.ndarray, y: np.ndarray, seed: int, quick: bool = False) -> np.ndarray:
    from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

    estimate = mutual_info_classif if has_labels(y) else mutual_info_regression
    return estimate(X, y, random_state=seed)


def histogram_boosting(X: np.ndarray, y: np.ndarray, seed: int, quick: bool = False) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import train_test_split

    boosting = HistGradientBoostingClassifier if has_labels(y) else HistGradientBoostingRegressor
    labels = y if has_labels(y) else None
    X_fit, X_held, y_fit, y_held = train_test_split(X, y, random_state=seed, stratify=labels)
    model = boosting(max_iter=10 if quick else 100, random_state=seed).fit(X_fit, y_fit)
    repeats = 1 if quick else 5
    found = permutation_importance(model, X_held, y_held, n_repeats=repeats, random_state=seed)
    return found.importances_mean


# -- packages ------------------------------------------------------------------------------------


def xgboost_gain(X: np.ndarray, y: np.ndarray, seed: int, quick: bool = False) -> np.ndarray:
    from xgboost import XGBClassifier, XGBRegressor

    options = {"n_jobs": 1, "random_state": seed, "n_estimators": 10 if quick else 100}
    if has_labels(y):
        return XGBClassifier(**options).fit(X, codes(y)).feature_importances_
    return XGBRegressor(**options).fit(X, y).feature_importances_


def boruta(X: np.ndarray, y: np.ndarray, seed: int, quick: bool = False) -> np.ndarray:
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    # The automatic number of trees counts on the root of the number of columns at each split.
    options: dict[str, Any] = {"max_depth": 5, "max_features": "sqrt", "n_jobs": 1}
    if has_labels(y):
        forest: Any = RandomForestClassifier(class_weight="balanced", **options)
    else:
        forest = RandomForestRegressor(**options)
    size: dict[str, Any] = (
        {"n_estimators": 10, "max_iter": 4} if quick else {"n_estimators": "auto"}
    )
    fitted = BorutaPy(forest, random_state=seed, **size).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no importance after a rejection: NaN
        history = np.nanmean(fitted.importance_history_[1:], axis=0)
    return break_ties(fitted.ranking_, np.nan_to_num(history))


def break_ties(ranking: np.ndarray, importances: np.ndarray) -> np.ndarray:
    """Scores that fall with the rank, and within a rank with the importance."""
    pairs = np.column_stack([-np.asarray(ranking, dtype=float), importances])
    return np.unique(pairs, axis=0, return_inverse=True)[1].ravel().astype(float)


def hsic_lasso(X: np.ndarray, y: np.ndarray, seed: int, quick: bool = False) -> np.ndarray:
    from pyHSICLasso import HSICLasso

    n, d = X.shape
    lasso = HSICLasso()
    lasso.input(X, codes(y) if has_labels(y) else y)
    method = lasso.classification if has_labels(y) else lasso.regression
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of rows that fill no block
        method(min(max(10, d // 10), d - 2), B=block_size(n), n_jobs=1)
    scores = np.zeros(d)
    scores[lasso.get_index()] = lasso.get_index_score()
    return scores


def block_size(n: int) -> int:
    """The divisor of n from 15 to 30 that is nearest to 20, the default; 20 if there is none."""
    divisors = [b for b in range(15, 31) if n % b == 0]
    return min(divisors, key=lambda b: abs(b - 20), default=20)


def lassonet(X: np.ndarray, y: np.ndarray, seed: int, quick: bool = False) -> np.ndarray:
    from lassonet import LassoNetClassifier, LassoNetRegressor

    options: dict[str, Any] = {"verbose": 0, "random_state": seed, "torch_seed": seed}
    if quick:
        options |= {"n_iters": (10, 2), "path_multiplier": 2.0, "lambda_start": 1.0}
    net = LassoNetClassifier(**options) if has_labels(y) else LassoNetRegressor(**options)
    with _seeded_torch(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of where the path starts
        net.path(standardized(X), codes(y) if has_labels(y) else standardized(y))
    return net.feature_importances_.numpy()


def stochastic_gates(X: np.ndarray, y: np.ndarray, seed: int, quick: bool = False) -> np.ndarray:
    import stg.utils

    # stg 0.1.2 looks for the abstract classes where Python 3.9 had them.
    stg.utils.collections = types.SimpleNamespace(**vars(collections.abc) | vars(collections))
    if has_labels(y):
        response = codes(y)
        options: dict[str, Any] = {"hidden_dims": [60, 20], "lam": 0.5}
        options |= {"task_type": "classification", "output_dim": response.max() + 1}
    else:
        response = standardized(y)[:, None]
        options = {"hidden_dims": [500, 50, 10], "lam": 0.1}
        options |= {"task_type": "regression", "output_dim": 1}
    n, d = X.shape
    epochs = 5000 if has_labels(y) else 3000
    with _seeded_torch(seed):
        gates = stg.STG(
            device="cpu",
            input_dim=d,
            activation="tanh",
            optimizer="SGD",
            learning_rate=0.1,
            batch_size=n,
            sigma=0.5,
            **options,
        )
        gates.fit(standardized(X), response, nr_epochs=20 if quick else epochs, verbose=False)
    return gates.get_gates("raw")


@contextlib.contextmanager
def _seeded_torch(seed: int) -> Iterator[None]:
    """One thread, and torch's global generator, which the networks draw from, as it was after."""
    import torch

    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


PEERS = (
    Peer(
        "mutual information",
        mutual_information,
        "of each column with the response, scikit-learn's defaults (three neighbours)",
    ),
    Peer(
        "HistGradientBoosting",
        histogram_boosting,
        "scikit-learn's defaults on three quarters of the rows; permutation importance, five "
        "shuffles, on the other quarter",
    ),
    Peer(
        "XGBoost",
        xgboost_gain,
        "defaults, its own importance by gain",
        package="xgboost-cpu",
        module="xgboost",
    ),
    Peer(
        "pyHSICLasso",
        hsic_lasso,
        "the default blocks of 20 rows, or the nearest divisor of n, and three permutations; the "
        "weights when a tenth of the columns, at least ten, have entered",
        package="pyHSICLasso",
        module="pyHSICLasso",
    ),
    Peer(
        "Boruta",
        boruta,
        "forests of depth 5 with the root of the number of columns at each split, the automatic "
        "number of trees, 100 iterations; its ranking, ties by the forests' mean importance",
        package="Boruta",
        module="boruta",
        most=LEAST,
    ),
    Peer(
        "STG",
        stochastic_gates,
        "the settings of its documentation (3,000 epochs with lam = 0.1, 5,000 with 0.5 for "
        "classes), standardised data, by the means of the gates",
        package="stg",
        module="stg",
        most=LEAST,
    ),
    Peer(
        "LassoNet",
        lassonet,
        "defaults on standardised data, `feature_importances_`: the penalty at which the path "
        "drops a column",
        package="lassonet",
        module="lassonet",
        most=LEAST,
    ),
)
