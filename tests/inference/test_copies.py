"""Columns that cannot be told apart: one feature, named as such, or no p-value."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from sobolev import ConvexSIC, HRTSelector

FAST = ConvexSIC(feature_map="landmark", lam=0.01)


def data(n=240, seed=0):
    """Four normal columns, of which the first matters."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 4)), columns=list("abcd"))
    return X, X["a"] + 0.5 * rng.standard_normal(n), rng


def fitted(X, y, **settings):
    return HRTSelector(FAST, random_state=0, **settings).fit(X, y)


def row(selector, name):
    table = selector.summary().set_index("feature")
    return table.loc[name]


def test_two_equal_columns_are_one_feature():
    X, y, _ = data()
    hrt = fitted(X.assign(copy=X["a"]), y)
    found = row(hrt, "a, copy")
    assert found["selected"]
    assert found["pvalue"] < 1e-3
    assert found["note"] == "cannot be told apart: copies"
    np.testing.assert_array_equal(hrt.units_["a, copy"], [0, 4])
    assert hrt.pvalues_[0] == hrt.pvalues_[4]
    assert hrt.get_support()[[0, 4]].all()
    assert "a, copy" in hrt._answer_html()


def test_two_equal_columns_that_do_not_matter_are_not_found():
    found = []
    for seed in range(5):
        X, y, _ = data(seed=seed)
        found.append(row(fitted(X.assign(copy=X["c"]), y), "c, copy")["pvalue"])
    assert np.nanmin(found) > 1e-4


def test_a_column_and_its_square_are_one_feature():
    X, _, rng = data()
    y = X["b"] ** 2 + 0.5 * rng.standard_normal(len(X))
    hrt = fitted(X.assign(square=X["b"] ** 2), y)
    assert row(hrt, "b, square")["selected"]
    assert "function" in row(hrt, "b, square")["note"]
    assert not row(hrt, "c")["selected"]


def test_a_full_set_of_one_hot_columns_is_one_feature():
    X, y, rng = data()
    codes = rng.integers(0, 3, len(X))
    hot = pd.DataFrame(np.eye(3)[codes], columns=["red", "green", "blue"])
    hrt = fitted(pd.concat([X, hot], axis=1), y + 2 * hot["red"])
    found = row(hrt, "red, green, blue")
    assert found["selected"]
    assert found["note"] == "cannot be told apart: full set of categories"
    assert row(hrt, "a")["selected"]


def test_near_copies_are_one_feature():
    X, y, rng = data()
    near = X["a"] + 0.02 * rng.standard_normal(len(X))
    assert row(fitted(X.assign(near=near), y), "a, near")["selected"]


def test_copies_join_a_group_of_the_user():
    X, y, _ = data()
    hrt = fitted(X.assign(copy=X["a"]), y, feature_groups={"pair": ["a", "b"]})
    np.testing.assert_array_equal(hrt.units_["pair, copy"], [0, 1, 4])
    assert row(hrt, "pair, copy")["selected"]


def test_kept_apart_what_others_determine_has_no_pvalue():
    X, y, rng = data()
    near = X["b"] + 0.02 * rng.standard_normal(len(X))
    hrt = fitted(X.assign(copy=X["a"], near=near), y, copies="keep")
    assert list(hrt.units_) == ["a", "b", "c", "d", "copy", "near"]
    for name in ("a", "copy"):
        assert np.isnan(row(hrt, name)["pvalue"])
        assert not row(hrt, name)["selected"]
        assert row(hrt, name)["note"] == "not tested: others determine it (copies)"
    assert row(hrt, "near")["note"] == "near copies"


def test_unknown_wish():
    X, y, _ = data()
    with pytest.raises(ValueError, match="copies"):
        fitted(X, y, copies="drop")


def test_a_selector_for_a_table_gives_the_same_answer():
    X, y, rng = data()
    X = X.assign(copy=X["a"], curve=X["b"] ** 2 + 0.3 * rng.standard_normal(len(X)))
    given = HRTSelector(FAST, random_state=0)
    ready = given.for_table(X)
    for response in (y, rng.standard_normal(len(X))):
        np.testing.assert_array_equal(
            ready.fit(X, response).pvalues_, given.fit(X, response).pvalues_
        )


def test_alternatives_are_other_models_with_the_same_settings():
    given = HRTSelector(FAST, fdr=0.2, random_state=3)
    offered = given.alternatives()
    assert [other.conditional for _, other in offered] == ["forest", "mixed", "forest"]
    assert offered[-1][1].statistic == "residual"
    assert all(other.fdr == 0.2 and other.random_state == 3 for _, other in offered)
    assert len(HRTSelector(conditional="forest").alternatives()) == 2


def test_what_depends_on_the_first_model_of_the_columns_is_left_out():
    """A response to b alone; c follows b, which a model without other columns does not know."""

    class Ignorant:
        def fit(self, X):
            self.X = X
            return self

        def grid(self, X, j):
            nodes = np.quantile(self.X[:, j], (np.arange(50) + 0.5) / 50)
            return np.tile(nodes, (len(X), 1)), np.full((len(X), 50), 0.02)

    X, _, rng = data(400)
    X["c"] = X["b"] + 0.7 * rng.standard_normal(len(X))
    y = X["b"] + rng.standard_normal(len(X))
    # A penalty that divides the effect of b between b and c.
    hrt = HRTSelector(Ridge(alpha=200), conditional=Ignorant(), random_state=0)
    with pytest.warns(UserWarning, match=r"did not fit: 'c' \(p = .*, then .*\)"):
        hrt.fit(X, y)
    assert list(hrt.left_out_) == ["c"]
    before, after = hrt.left_out_["c"]
    assert before < 0.001 < 0.05 < after == row(hrt, "c")["pvalue"]
    assert not row(hrt, "c")["selected"]
    assert row(hrt, "c")["note"].startswith("left out")
    assert row(hrt, "b")["selected"]
    one_model = clone(hrt).set_params(pvalue="studentised").fit(X, y)
    assert row(one_model, "c")["selected"]
    assert not one_model.left_out_
    assert not HRTSelector(Ridge(alpha=200), random_state=0).fit(X, y).left_out_
