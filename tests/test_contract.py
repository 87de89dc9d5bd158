"""The scikit-learn contract: every check passes, none is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from sobolev import ConvexSIC, NeuralSIC, SobolevClassifier, SobolevRegressor
from sobolev.convex import FourierMap
from sobolev.neural import Optimizer, SmallCritic

SHORT = {"optimizer": Optimizer(max_iter=60, rounds=1), "random_state": 0}
LONG = {"optimizer": Optimizer(max_iter=200, rounds=1), "random_state": 0}


@parametrize_with_checks(
    [
        ConvexSIC(),
        ConvexSIC(feature_map=FourierMap(64)),
        ConvexSIC(feature_map="linear"),
        NeuralSIC(optimizer=Optimizer(max_iter=60, rounds=2), random_state=0),
        NeuralSIC(critic=SmallCritic(widths=(20,)), **SHORT),
        SobolevRegressor(**LONG),
        SobolevClassifier(**LONG),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
