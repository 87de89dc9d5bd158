"""The study of rows that belong together."""

import numpy as np
import pytest

from reproduction.benchmarks import subjects


@pytest.mark.parametrize("design", subjects.CORRELATIONS)
def test_designs_have_the_dependence_that_they_name(design):
    found = []
    for seed in range(20):
        X, _, groups, true = subjects.draw(design, "four columns", seed)
        assert true.sum() == 4
        x = X[:, 5]
        if subjects.CORRELATIONS[design] is None:
            found.append(np.corrcoef(x[1:], x[:-1])[0, 1])
        else:
            assert np.ptp(X[groups == 3, -1]) == 0
            means = x.reshape(-1, subjects.SUBJECT_ROWS).mean(axis=1)
            found.append((means.var() * 10 - x.var()) / (9 * x.var()))
    assert np.mean(found) == pytest.approx(subjects.CORRELATIONS[design] or 0.7, abs=0.06)


def test_a_data_set_is_measured_and_shown():
    rows = []
    for told in subjects.TOLD:
        settings = {"design": "subjects, correlation 0.5", "effects": "none", "told": told}
        rows.append(settings | {"version": "0"} | subjects.measure(settings, 0))
    page = subjects.render(rows)
    assert page.count("| subjects, correlation 0.5 | none |") == 2
    (shown,) = subjects.quoted(rows).values()
    assert "99 % limit" in shown
