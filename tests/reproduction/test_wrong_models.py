"""Designs that were made to break the test."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from reproduction.benchmarks import wrong_models
from reproduction.benchmarks.wrong_models import DESIGNS, METHODS, N_COLUMNS, N_ROWS


@pytest.mark.parametrize("design", DESIGNS)
def test_a_design_names_its_active_columns(design):
    X, y, active = DESIGNS[design](np.random.default_rng(0))
    assert X.shape == (N_ROWS, N_COLUMNS)
    assert y.shape == (N_ROWS,)
    assert set(active) < set(X.columns)
    again = DESIGNS[design](np.random.default_rng(0))
    assert X.equals(again[0])


def test_the_null_column_is_related_to_the_response():
    X, y, _ = DESIGNS["a product"](np.random.default_rng(0))
    assert abs(spearmanr(X["x2"], y).statistic) > 0.4


def test_the_page_marks_what_exceeds_the_level():
    rows = [
        {"design": "a wave", "method": method, "tpr": 0.5, "fdp": fdp, "study": "wrong_models"}
        for method, fdp in zip(METHODS, (0.5, 0.05), strict=True)
        for _ in range(4)
    ]
    text = wrong_models.body(rows)
    (line,) = [line for line in text.splitlines() if line.startswith("| a wave")]
    assert line == "| a wave | **0.500 ± 0.000** | 0.050 ± 0.000 | 0.50 | 0.50 |"
    assert "4 data sets" in text
