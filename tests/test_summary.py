"""The answer of a fitted selector: table, headline, notebook page, progress."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LassoCV

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, NeuralSIC, SobolevRegressor
from sobolev.neural import Optimizer
from sobolev.summary import feature_units, headline

QUICK = Optimizer(max_iter=40, rounds=1)
RANKED = ["feature", "kind", "importance", "selected", "note"]
TESTED = [*RANKED[:3], "statistic", "pvalue", "qvalue", *RANKED[3:]]
FILTERED = [*RANKED[:3], "W", "qvalue", *RANKED[3:]]
SELECTORS = {
    "convex": (ConvexSIC(lam=0.02), RANKED),
    "neural": (NeuralSIC(optimizer=QUICK, random_state=0), RANKED),
    "regressor": (SobolevRegressor(optimizer=QUICK, random_state=0), RANKED),
    "hrt": (HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), random_state=0), TESTED),
    "knockoffs": (KnockoffSelector(statistic="lasso_path", fdr=0.4, random_state=0), FILTERED),
}


def table(n=200, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, d)), columns=[f"g{j}" for j in range(d)])
    return X, 2 * X["g3"] - X["g5"] + X["g7"] + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("name", SELECTORS)
def test_one_row_for_each_feature_strongest_first(name):
    selector, columns = SELECTORS[name]
    X, y = table()
    found = selector.fit(X, y).summary()
    assert list(found.columns) == columns
    assert sorted(found["feature"]) == sorted(X.columns)
    np.testing.assert_array_equal(
        found.set_index("feature").loc[X.columns, "selected"], selector.get_support()
    )
    assert found["selected"].is_monotonic_decreasing
    assert set(found["feature"][:3]) == {"g3", "g5", "g7"}
    assert (found["kind"] == "numeric").all()


def test_evidence_is_that_of_the_selector():
    X, y = table()
    hrt = HRTSelector(
        ConvexSIC(feature_map="landmark", lam=0.02), shortlist=5, scheme="split", random_state=0
    ).fit(X, y)
    found = hrt.summary().set_index("feature").loc[X.columns]
    for column, values in (("pvalue", hrt.pvalues_), ("qvalue", hrt.qvalues_)):
        np.testing.assert_array_equal(found[column], values)
    np.testing.assert_array_equal(found["note"] == "not tested", np.isnan(hrt.pvalues_))
    np.testing.assert_allclose(found["importance"], hrt.estimator_.feature_importances_)
    filtered = KnockoffSelector(statistic="lasso_path", random_state=0).fit(X, y)
    found = filtered.summary().set_index("feature").loc[X.columns]
    np.testing.assert_array_equal(found["W"], filtered.statistics_)


@pytest.mark.parametrize("name", ["convex", "hrt", "knockoffs"])
def test_a_group_has_one_row_with_its_name(name):
    X, y = table()
    selector = SELECTORS[name][0]
    groups = {"both": ["g3", "g4"]}
    found = type(selector)(**selector.get_params(deep=False)).set_params(feature_groups=groups)
    rows = found.fit(X, y).summary()
    assert len(rows) == X.shape[1] - 1
    assert rows.loc[rows["feature"] == "both", "kind"].tolist() == ["group"]
    assert not {"g3", "g4"} & set(rows["feature"])


def test_overlapping_groups_have_no_rows_of_their_own():
    assert list(feature_units([[0, 1], [1, 2]], ["a", "b", "c"])) == ["a", "b", "c"]


def test_constant_columns_are_noted():
    X, y = table()
    X["g2"] = 1.0
    with pytest.warns(UserWarning, match="constant"):
        found = ConvexSIC(lam=0.02).fit(X, y).summary().set_index("feature")
    assert found.loc["g2", "note"] == "constant"
    assert (found.drop("g2")["note"] == "").all()


def test_headlines():
    rows = pd.DataFrame({"feature": [f"x{j}" for j in range(12)], "selected": True})
    assert headline(rows, 0.1).endswith("x7 and 4 more")
    assert headline(rows.assign(selected=False), 0.2) == "None of 12 features selected at FDR 20 %"
    assert headline(rows, None).startswith("12 of 12 features by importance: x0")


@pytest.mark.parametrize("name", ["convex", "hrt", "knockoffs"])
def test_a_notebook_shows_the_answer_and_escapes_names(name):
    X, y = table()
    X = X.rename(columns={"g3": "<script>alert(1)</script>"})
    selector = SELECTORS[name][0]
    fitted = selector.fit(X, y)
    for page in (fitted._repr_mimebundle_()["text/html"], fitted._repr_html_()):
        assert page.count("of 12 features") == 1
        assert "&lt;script&gt;alert" in page
        assert "<script>alert" not in page
    assert "of 12 features" not in type(selector)()._repr_html_()


@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize(
    ("selector", "said"),
    [
        (HRTSelector(LassoCV(), random_state=0), "testing"),
        (KnockoffSelector(LassoCV(), random_state=0, n_draws=2), "draw 2 of 2"),
    ],
    ids=["hrt", "knockoffs"],
)
def test_progress_of_the_selectors(selector, said, verbose, capsys):
    X, y = table(100)
    selector.set_params(verbose=verbose).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert (said in err) == bool(verbose)
