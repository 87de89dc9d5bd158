"""Every estimator of this package that the studies construct with settings of its own.

Studies name settings by flat options; only this module knows which part of an estimator each
option belongs to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

N_TREES = 100
FORWARD, PAPER = "ConvexSIC, forward", "NeuralSIC, paper"
# The methods that the paper's simulations compare.
METHODS = (
    "elastic net",
    "random forest",
    "MSE + Sobolev penalty",
    PAPER,
    "NeuralSIC",
    "Boosted SIC",
    "ConvexSIC",
    FORWARD,
)
BOOSTED: dict[str, Any] = {"batch_size": [10, 30, 50], "aggregate": "geometric"}


def convex_sic(**options: Any) -> Any:
    """ConvexSIC; options are ``n_components``, ``recursions``, ``precision`` and its own."""
    from sobolev import ConvexSIC
    from sobolev.convex import Alternating, AutoMap, FourierMap, LandmarkMap

    maps = {"auto": AutoMap, "landmark": LandmarkMap, "fourier": FourierMap}
    if "n_components" in options:
        kind = maps[options.get("feature_map", "auto")]
        options["feature_map"] = kind(options.pop("n_components"))
    solver = {"rounds": options.pop("recursions", "auto")}
    if "precision" in options:
        solver["precision"] = options.pop("precision")
    return ConvexSIC(solver=Alternating(**solver), **options)


def fit_stream(model: Any, folder: str, target: str, **options: Any) -> Any:
    """Fit ConvexSIC to the files of a folder; options are ``round_rows``."""
    from sobolev import streaming

    return streaming.fit_stream(model, folder, target, **options)


def neural_sic(**options: Any) -> Any:
    """NeuralSIC; options are ``preset``, ``batch_size``, ``aggregate``, ``n_members``, ...

    Further options are ``recursions``, ``max_iter``, ``eta_rule``, ``early_stopping``, ``critic``.
    """
    from sobolev import NeuralSIC
    from sobolev.neural import Boosting, EarlyStopping, Optimizer

    paper = options.pop("preset", None) == "paper"
    boosting = {n: options.pop(n) for n in ("n_members", "aggregate") if n in options}
    own = {"critic", "lam", "rho", "measure", "target", "n_jobs", "random_state"}
    training = {n: options.pop(n) for n in list(options) if n not in own}
    if "recursions" in training:
        training["rounds"] = training.pop("recursions")
    if training.get("early_stopping"):
        training["early_stopping"] = EarlyStopping()
    options["optimizer"] = Optimizer.paper(**training) if paper else Optimizer(**training)
    options["boosting"] = Boosting(**boosting)
    return NeuralSIC.paper(**options) if paper else NeuralSIC(**options)


def position_knockoffs(groups: list[list[int]] | None, estimator: Any, **options: Any) -> Any:
    """KnockoffSelector whose units are groups of columns."""
    from sobolev import KnockoffSelector

    return KnockoffSelector(estimator, feature_groups=groups, diagnose=False, **options)


def position_tests(groups: list[list[int]], **options: Any) -> Any:
    """HRTSelector whose units are groups of columns of categories."""
    from sobolev import HRTSelector

    return HRTSelector(conditional="categorical", feature_groups=groups, diagnose=False, **options)


def hiv_critic() -> Any:
    """The critic of the knockoffs of HIV."""
    return convex_sic(n_components=200, recursions=1, lam="relaxed", cv=3)


def plain_network(seed: int) -> Any:
    """The paper's regressor: three layers, dropout 0.3, no penalty, 1000 updates of Adam."""
    from sobolev.neural import DenseNetwork, Optimizer, SobolevRegressor

    return SobolevRegressor(
        network=DenseNetwork(widths=(100, 100), dropout=0.3),
        lam=0.0,
        optimizer=Optimizer(rounds=1, batch_size=16, max_iter=1000),
        random_state=seed,
    )


def random_forest(n_trees: int, seed: int, *, classification: bool = False) -> Any:
    """The peer of every ranking, on one thread."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = RandomForestClassifier if classification else RandomForestRegressor
    return forest(n_estimators=n_trees, random_state=seed, n_jobs=1)


def make_model(method: str, seed: int, critic: str | None = None) -> Any:
    """A method by name.

    Parameters
    ----------
    method : str
        One of ``METHODS`` but the forward one.
    seed : int
    critic : str or None
        The architecture of neural critics; None is that of the preset or the default.
    """
    from sklearn.linear_model import ElasticNetCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if method == "elastic net":
        return make_pipeline(StandardScaler(), ElasticNetCV())
    if method == "random forest":
        return random_forest(N_TREES, seed)
    if method == "ConvexSIC":
        return convex_sic(random_state=seed)
    if method == "MSE + Sobolev penalty":
        from sobolev import SobolevRegressor

        return SobolevRegressor(random_state=seed)
    options: dict[str, Any] = {} if critic is None else {"critic": critic}
    if method == PAPER:
        options["preset"] = "paper"
    elif method == "Boosted SIC":
        options |= BOOSTED
    elif method != "NeuralSIC":
        raise ValueError(f"method={method!r} is unknown; use one of {', '.join(METHODS)}.")
    return neural_sic(random_state=seed, **options)


def importances(model: Any) -> np.ndarray:
    """What a fitted model ranks columns by: its importances, or the sizes of its coefficients."""
    if hasattr(model, "feature_importances_"):
        return model.feature_importances_
    return np.abs(model[-1].coef_)
