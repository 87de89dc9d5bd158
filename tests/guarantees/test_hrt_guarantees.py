"""The saddlepoint against a million look-ups on tables of real fits."""

import numpy as np
import pytest
from sobolev.inference.tables import make_evaluator, null_table

from sobolev import ConvexSIC
from sobolev.conditionals import MixedConditional
from sobolev.datasets import make_liang, make_sinexp
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.saddlepoint import saddlepoint_pvalue

N_DRAWS = 10**6
LEVELS = (0.5, 0.1, 0.01, 1e-3, 1e-4)


def tables(source, n, statistic):
    """Ten tables of one fit: six columns of largest importance and four of the rest."""
    data = source(n_samples=2 * n, random_state=7)
    X, y = data.data[:, :60], data.target
    model = ConvexSIC(lam=0.01).fit(X[:n], y[:n])
    conditional = MixedConditional().fit(X)
    evaluator = make_evaluator(model, X[n:], y[n:], statistic)
    order = np.argsort(-model.feature_importances_)
    for j in [*order[:6], *order[-4:]]:
        yield null_table(evaluator, int(j), X[n:, j], *conditional.grid(X[n:], int(j)))


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["risk", "witness"])
@pytest.mark.parametrize(
    ("source", "n"),
    [
        (make_sinexp, 60),
        (make_sinexp, 125),
        (make_sinexp, 250),
        (make_liang, 125),
        (make_liang, 250),
    ],
)
def test_saddlepoint_within_three_standard_errors(source, n, statistic):
    """100 tables over all cases, five levels each.

    The look-ups alone are beyond three standard errors in 0.27 % of checks: of the 50 of a case,
    more than three are so once in 100,000 runs, and none beyond five once in 40,000.
    """
    gaps = []
    for table in tables(source, n, statistic):
        drawn = np.sort(table.draw(N_DRAWS, 0))
        for level in LEVELS:
            observed = drawn[int((1 - level) * N_DRAWS)]
            share = np.mean(drawn >= observed)
            error = np.sqrt(share * (1 - share) / N_DRAWS)
            found = saddlepoint_pvalue(table.values, table.weights, observed)
            gaps.append(abs(found - share) / error)
    print(f"largest gap {max(gaps):.2f} standard errors")
    assert np.count_nonzero(np.array(gaps) > 3) <= 3
    assert max(gaps) < 5


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["risk", "witness"])
def test_monotone_and_positive_far_out(statistic):
    for table in tables(make_sinexp, 125, statistic):
        null = NullTable(table.values, table.weights, table.observed)
        reach = np.linspace(-3, 12, 200) * null.deviation * table.observed.size
        points = null.mean * table.observed.size + reach
        found = [saddlepoint_pvalue(table.values, table.weights, s) for s in points]
        assert np.all(np.diff(found) <= 0)
        assert np.isfinite(found).all()
        assert 0 < found[-1] < 1e-12
