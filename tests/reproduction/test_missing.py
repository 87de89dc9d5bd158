"""The study of missing cells."""

import numpy as np
import pytest

from reproduction.benchmarks import missing


@pytest.mark.parametrize(("kind", "share"), missing.CASES)
def test_cells_are_missing_as_they_should(kind, share):
    X, _, true = missing.draw(kind, share, 0)
    gone = np.isnan(X)
    assert true.sum() == 4
    if kind == "depending on a column":
        assert not gone[:, 1::2].any()
        assert gone[:, ::2].mean() == pytest.approx(share, abs=0.04)
        above = X[:, 1::2] > 0
        assert gone[:, ::2][above].mean() > 1.5 * gone[:, ::2][~above].mean()
    else:
        assert gone.mean() == pytest.approx(share, abs=0.02)


def test_a_data_set_is_measured_and_shown():
    rows = []
    for treatment in missing.TREATMENTS:
        settings = {"kind": "at random", "share": 0.2, "treatment": treatment}
        rows.append(settings | {"version": "0"} | missing.measure(settings, 0))
    page = missing.render(rows)
    assert "| 20% at random | drawn | 1 |" in page
    assert "| 20% at random | median | 1 |" in page
    assert len(missing.tasks(quick=True)) == 11
    (shown,) = missing.quoted(rows).values()
    assert "99 % limit" in shown
