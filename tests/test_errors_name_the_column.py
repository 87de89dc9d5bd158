"""Mistakes in a table: the message names the user's column."""

import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, NeuralSIC, hrt_test, sic_test
from sobolev.plotting import plot_effect

SELECTORS = [ConvexSIC, NeuralSIC, HRTSelector, KnockoffSelector]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.standard_normal((80, 4)), columns=["dose", "age", "height", "weight"])


@pytest.fixture
def y(table):
    return (table["dose"] + 0.1 * table["age"]).rename("response")


@pytest.mark.parametrize("selector", SELECTORS)
def test_infinity(selector, table, y):
    table.loc[3, "age"] = np.inf
    with pytest.raises(ValueError, match=r"infinity.*'age'|'age'.*infinity"):
        selector().fit(table, y)


@pytest.mark.parametrize("selector", SELECTORS)
def test_text_among_numbers(selector, table, y):
    table = table.astype(object)
    table.loc[2, "age"] = "x"
    with pytest.raises(ValueError, match="'age'"):
        selector().fit(table, y)


@pytest.mark.parametrize("selector", SELECTORS)
def test_two_columns_of_one_name(selector, table, y):
    with pytest.raises(ValueError, match="several columns of the name 'age'; rename"):
        selector().fit(pd.concat([table, table[["age"]]], axis=1), y)


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_covariate_that_is_not_there(selector, table, y):
    with pytest.raises(ValueError, match="adjust names column 'agee'"):
        selector(adjust=["agee"]).fit(table, y)


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_group_of_a_column_that_is_not_there(selector, table, y):
    with pytest.raises(ValueError, match="group 'size' names column 'heigth'"):
        selector(feature_groups={"size": ["heigth", "weight"]}).fit(table, y)


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_response_that_is_not_there(selector, table):
    with pytest.raises(ValueError, match="'respons'"):
        selector().fit(table, "respons")


@pytest.mark.parametrize("selector", [ConvexSIC, NeuralSIC])
def test_missing_values_where_they_are_not_accepted(selector, table, y):
    table.loc[3, "age"] = np.nan
    with pytest.raises(ValueError, match=r"column 'age' \(1 of 80 rows\)"):
        selector().fit(table, y)


def test_a_single_test_of_a_column_that_is_not_there(table, y):
    with pytest.raises(ValueError, match="feature names column 'doses'"):
        hrt_test(table.to_numpy(), y.to_numpy(), "doses")
    with pytest.raises(ValueError, match="'doses'"):
        hrt_test(table, y, "doses")


def test_a_picture_of_a_column_that_is_not_there(table, y):
    sic = ConvexSIC(lam=0.03).fit(table, y)
    with pytest.raises(ValueError, match="feature 'doses' is not a column"):
        plot_effect(sic, table, y, "doses")


def test_subjects_and_weights_that_are_not_there(table, y):
    with pytest.raises(ValueError, match="groups: there is no column 'patient'"):
        HRTSelector().fit(table, y, groups="patient")
    with pytest.raises(ValueError, match="sample_weight: there is no column 'wt'"):
        HRTSelector().fit(table, y, sample_weight="wt")


def test_a_test_of_independence_names_the_column(table, y):
    table.loc[3, "age"] = np.inf
    with pytest.raises(ValueError, match="'age'"):
        sic_test(table, y)
