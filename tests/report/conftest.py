import numpy as np
import pandas as pd
import pytest

from sobolev.inference.knockoff_filter import knockoff_qvalues
from sobolev.inference.multiple_testing import qvalues
from sobolev.report import COLUMNS, SelectionResult


def _hrt(d):
    """The strongest d // 2 are tested; every tenth of all matters."""
    rng = np.random.default_rng(0)
    importance = np.sort(rng.dirichlet(np.full(d, 0.3)))[::-1]
    pvalue = np.full(d, np.nan)
    pvalue[: d // 2] = rng.uniform(size=d // 2)
    pvalue[: d // 10] = 10.0 ** -rng.uniform(2, 15, d // 10)
    q = qvalues(pvalue)
    return importance, np.where(np.isnan(pvalue), np.nan, 0.25), pvalue, q


def _knockoffs(d):
    rng = np.random.default_rng(0)
    W = rng.normal(0, 0.1, d)
    W[: d // 4] = rng.uniform(0.3, 1, d // 4)
    return np.maximum(W, 0) / 10, W, np.full(d, np.nan), knockoff_qvalues(W)


@pytest.fixture(scope="session")
def make_result():
    """A result of a method; names, number of features and fields can be given."""

    def make(method="hrt", d=40, names=None, fdr=0.1, **fields):
        d = d if names is None else len(names)
        importance, statistic, pvalue, q = (_knockoffs if method == "knockoffs" else _hrt)(d)
        selected = np.nan_to_num(q, nan=2.0) <= fdr
        if method == "rank":
            statistic = pvalue = q = np.full(d, np.nan)
            selected, fdr = np.arange(d) < 3, None
        table = pd.DataFrame(
            {
                "feature": [f"x{j}" for j in range(d)] if names is None else names,
                "kind": "numeric",
                "importance": importance,
                "statistic": statistic,
                "pvalue": pvalue,
                "qvalue": q,
                "selected": selected,
                "note": np.where(np.isnan(q), "not tested", ""),
            }
        )
        assert tuple(table.columns) == COLUMNS
        by = ["qvalue", "importance"] if method != "rank" else ["importance"]
        table = table.sort_values(by, ascending=[c == "qvalue" for c in by], ignore_index=True)
        standard = {
            "targets": ("y",),
            "fdr": fdr,
            "table": table,
            "data": {"name": "cells.csv", "rows": 500, "rows_dropped": 2, "columns": d + 1},
            "settings": {"critic": "convex", "seed": 0},
            "versions": {"sobolev": "1.2.3", "numpy": "2.0"},
            "seconds": 1.5,
        }
        return SelectionResult(method=method, **(standard | fields))

    return make
