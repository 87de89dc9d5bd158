"""Write the stored estimators of the current format version, with their numbers, to tests/data.

Run it once when the format version is raised; files of earlier versions stay as they are, since the
tests read all of them: ``python tools/stored_models.py``.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from sobolev import (
    ConvexSIC,
    HRTSelector,
    KnockoffSelector,
    NeuralSIC,
    SobolevClassifier,
    SobolevRegressor,
    save,
)
from sobolev.convex import Alternating, FourierMap, LandmarkMap
from sobolev.neural import DenseNetwork, Optimizer, SmallCritic
from sobolev.storage.files import VERSION

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "models"
X = np.sin(np.outer(np.arange(1, 61), [1.0, 1.7, 2.3, 3.1]))
Y = X[:, 1] + X[:, 0] ** 2
TRAINING = Optimizer(max_iter=10, rounds=2)


def numbers(estimator: object) -> dict[str, list]:
    """What a reader of the file must find again."""
    found = {"feature_importances_": estimator.feature_importances_.tolist()}
    if hasattr(estimator, "witness"):
        y = Y[:5] if not hasattr(estimator, "classes_") else (Y[:5] > 0.5)
        found["witness"] = estimator.witness(X[:5], y).tolist()
    if hasattr(estimator, "predict"):
        found["predict"] = np.asarray(estimator.predict(X[:5]), dtype=float).tolist()
    for name in ("qvalues_", "support_"):
        if hasattr(estimator, name):
            found[name] = np.nan_to_num(np.asarray(getattr(estimator, name), dtype=float)).tolist()
    return found


def estimators() -> dict[str, object]:
    """A small fit of every class."""
    wave = np.sin(np.outer(np.arange(1, 121), np.sqrt(np.arange(2, 26))))
    table = pd.DataFrame(wave[:, :4], columns=list("abcd"))
    table["kind"] = np.where(wave[:, 4] > 0, "left", "right")
    small = ConvexSIC(feature_map=LandmarkMap(n_components=10), lam=0.03, random_state=0)
    response = wave[:, 0] + (wave[:, 4] > 0) + 0.3 * wave[:, 7]
    return {
        "ConvexSIC": small.fit(X, Y),
        "ConvexSIC-classes": ConvexSIC(
            feature_map=FourierMap(n_components=10),
            lam=0.03,
            solver=Alternating(rounds=1),
            random_state=0,
        ).fit(X, Y > 0.5),
        "NeuralSIC": NeuralSIC(
            critic=SmallCritic(widths=(6,)), optimizer=TRAINING, random_state=0
        ).fit(X, Y),
        "SobolevRegressor": SobolevRegressor(
            network=DenseNetwork(widths=(6,)), optimizer=TRAINING, random_state=0
        ).fit(X, Y),
        "SobolevClassifier": SobolevClassifier(
            network=DenseNetwork(widths=(6,)), optimizer=TRAINING, random_state=0
        ).fit(X, Y > 0.5),
        "HRTSelector": HRTSelector(small, n_repeats=1, random_state=0).fit(table, response),
        "KnockoffSelector": KnockoffSelector(
            small, sampler="gaussian", fdr=0.2, random_state=0
        ).fit(wave, wave[:, :8].sum(axis=1)),
    }


def main() -> None:
    """Write files and numbers."""
    for name, estimator in estimators().items():
        stem = f"{name}-format-{VERSION}"
        save(estimator, FOLDER / f"{stem}.npz", overwrite=True)
        text = json.dumps(numbers(estimator), indent=1)
        (FOLDER / f"{stem}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
