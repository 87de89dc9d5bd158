"""The neural estimators keep the protocol of critics: fits without checks, rows, replacements."""

import numpy as np
import pytest
from torch import nn

from sobolev import HRTSelector, NeuralSIC, SobolevClassifier, SobolevRegressor
from sobolev.critic import as_critic
from sobolev.neural import BigCritic, Optimizer, SmallCritic
from sobolev.neural.evaluation import MAX_REFERENCE

N, D = 100, 5
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X[:, 1] + np.sin(2 * X[:, 4]) + 0.1 * RNG.standard_normal(N)
SHORT = {"optimizer": Optimizer(max_iter=30, rounds=2), "random_state": 0}


class Module(nn.Module):
    """A critic of a user's own."""

    def __init__(self, n_features, n_targets):
        super().__init__()
        self.x, self.y = nn.Linear(n_features, 8), nn.Linear(n_targets, 8)

    def forward(self, x, y):
        return (nn.functional.relu(self.x(x)) * self.y(y)).sum(1)


ESTIMATORS = {
    "bilinear": (NeuralSIC(**SHORT), Y),
    "two members": (NeuralSIC(critic=SmallCritic((20,)), boosting=2, **SHORT), Y),
    "big": (NeuralSIC(critic=BigCritic((20,), (10,), (20,)), **SHORT), Y),
    "module": (NeuralSIC(critic=Module, boosting=2, **SHORT), Y),
    "module and bilinear": (NeuralSIC(critic=[Module, "bilinear"], **SHORT), Y),
    "regressor": (SobolevRegressor(**SHORT), Y),
    "classifier": (SobolevClassifier(**SHORT), np.where(Y > 0, "high", "low")),
}


@pytest.fixture(params=ESTIMATORS)
def fitted(request):
    estimator, y = ESTIMATORS[request.param]
    return estimator.fit(X, y), y


def test_they_are_critics_themselves(fitted):
    estimator, _ = fitted
    assert as_critic(estimator) is estimator


@pytest.mark.parametrize("statistic", ["risk", "witness"])
def test_replaced_columns_are_evaluated_as_new_rows_are(fitted, statistic):
    estimator, y = fitted
    if hasattr(estimator, "reference_"):
        estimator.reference_ = estimator.reference_[:MAX_REFERENCE]
    evaluator, columns = estimator.evaluator(X, y, statistic), np.array([4, 1])
    nodes = np.random.default_rng(1).standard_normal((N, 3, 2))
    own, shared = evaluator.each(columns, nodes), evaluator.at(columns, nodes[0])
    assert np.ptp(own, axis=1).min() > 0
    for q in range(3):
        for values, found in ((nodes[:, q], own[:, q]), (nodes[0, q], shared[:, q])):
            moved = X.copy()
            moved[:, columns] = values
            np.testing.assert_allclose(found, getattr(estimator, statistic)(moved, y), atol=1e-5)


def test_a_fit_of_checked_rows_is_the_same_fit(fitted):
    estimator, y = fitted
    again = type(estimator)(**estimator.get_params(deep=False)).fit_validated(X, y)
    np.testing.assert_array_equal(again.feature_importances_, estimator.feature_importances_)
    np.testing.assert_array_equal(again.risk(X, y), estimator.risk(X, y))


def test_for_more_rows_the_penalty_is_lighter(fitted):
    estimator, _ = fitted
    more = estimator.for_more_rows(100, 200)
    assert more.lam == estimator.lam_ / 2
    assert more is not estimator
    assert estimator.lam == estimator.lam_


def test_predictors_have_their_loss():
    regressor = SobolevRegressor(**SHORT).fit(X, Y)
    np.testing.assert_allclose(regressor.risk(X, Y), -((regressor.predict(X) - Y) ** 2))
    labels = np.where(Y > 0, "high", "low")
    classifier = SobolevClassifier(**SHORT).fit(X, labels)
    p = classifier.predict_proba(X)[np.arange(N), (labels == "low").astype(int)]
    np.testing.assert_allclose(classifier.risk(X, labels), np.log(p))


def test_a_module_of_the_user_is_tested():
    found = HRTSelector(NeuralSIC(critic=Module, **SHORT), random_state=0).fit(X, Y)
    assert np.isfinite(found.pvalues_).any()
