"""The scikit-learn contract: every check passes, none is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from sobolev import ConvexSIC


@parametrize_with_checks(
    [
        ConvexSIC(),
        ConvexSIC(feature_map="fourier", n_components=64),
        ConvexSIC(feature_map="linear"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
