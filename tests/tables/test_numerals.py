import numpy as np
import pandas as pd
import pytest

from sobolev.tables import prepare, read_table
from sobolev.tables.numerals import has_decimal_comma, numbers_from_text, parse


def read(*texts, decimal="."):
    return numbers_from_text(pd.Series(texts, name="x"), decimal)


def stays(column):
    return numbers_from_text(column).column is column


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", " 2.5", "-3e2"], [1, 2.5, -300]),
        (["1,234,567", "12", "1,000.5"], [1234567, 12, 1000.5]),
        (["1.234.567", "12", "1.000,5"], [1234567, 12, 1000.5]),
        (["1 234", "12", "1\u00a0234\u202f567,5"], [1234, 12, 1234567.5]),
        (["1'234", "12", "7'000.5"], [1234, 12, 7000.5]),
        (["1,5", "2", "-0,25"], [1.5, 2, -0.25]),
        (["12%", "3.5 %", "-1%"], [12, 3.5, -1]),
        (["$1,234.50", "-$7", "$ 3"], [1234.5, -7, 3]),
        (["5 €", "1.000,5 €", "3"], [5, 1000.5, 3]),
    ],
)
def test_notations_of_numbers(texts, values):
    found = read(*texts)
    np.testing.assert_allclose(found.column, values)
    assert not found.marks


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "12%", "3"],  # are these per cent?
        ["$5", "€5", "7"],
        ["1,23,4", "5", "6"],
        ["10-19", "20-29", "30"],
        ["a", "b", "7"],
        ["135", "136A", "137"],
    ],
)
def test_texts_that_are_no_numbers_stay_text(texts):
    assert stays(pd.Series(texts * 4, name="x"))


def test_the_decimal_sign_decides_what_a_thousand_is():
    assert read("1.234", "950", "2.000", decimal=",").column.tolist() == [1234, 950, 2000]
    assert read("1.234", "950", "2.000").column.tolist() == [1.234, 950, 2]
    assert read("1.5", "2.25", decimal=",").column.tolist() == [1.5, 2.25]


def test_marks_of_missing_values_count_among_numbers_only():
    marks = ["?", "-", "--", ".", "n/a", "None", "missing"]
    found = read("1", "2.5", None, *marks, "?")
    assert found.column.isna().sum() == 9
    assert found.marks.startswith("'?' in 2, ")
    assert stays(pd.Series(["low", "high", *marks], name="x"))
    assert stays(pd.Series([None, None], name="x", dtype=object))
    assert stays(pd.Series(["?", "-"], name="x"))
    flags = read("True", "None", None, "False")
    assert flags.column.isna().tolist() == [False, True, True, False]
    assert flags.marks == "'None' in 1"


def test_few_whole_numbers_and_a_text_are_categories():
    column = pd.Series(["4", "6", "8"] * 20 + ["rotary"], name="cylinders")
    found = numbers_from_text(column)
    assert found.column is column
    assert found.mixed == "'rotary' in 1"
    frame = pd.DataFrame({"cylinders": column, "y": np.sin(np.arange(61.0))})
    data = prepare(frame, ["y"])
    assert data.kinds == {"cylinders": "categorical"}
    assert any("'cylinders' 'rotary' in 1" in note for note in data.notes)


def test_less_than_nine_tenths_numbers_are_text():
    rng = np.random.default_rng(0)
    texts = [f"{v:.4f}" for v in rng.normal(size=80)] + ["<0.01"] * 20
    assert stays(pd.Series(texts, name="x"))
    frame = pd.DataFrame({"x": texts, "z": rng.normal(size=100), "y": rng.normal(size=100)})
    reason = dict(prepare(frame, ["y"]).set_aside)["x"]
    assert reason == "numbers in 80 of 100 rows and text such as '<0.01' in the others"


def test_the_notation_that_fits_most_values_is_taken():
    assert parse(pd.Series(["1,5", "2,5", "x"], dtype=object)).tolist()[:2] == [1.5, 2.5]
    assert has_decimal_comma(pd.Series(["1,5", "2", None]))
    assert not has_decimal_comma(pd.Series(["a", "2,5"]))
    assert not has_decimal_comma(pd.Series([1.5, 2]))


# -- files ---------------------------------------------------------------------------------------


def test_a_decimal_comma_is_detected_unless_commas_delimit(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;c\n1,5;1.200;u\n2,5;950;v\n")
    frame = read_table(path)
    assert frame["a"].tolist() == [1.5, 2.5]
    assert frame.attrs["decimal"] == ","
    assert numbers_from_text(frame["b"], ",").column.tolist() == [1200, 950]
    assert read_table(path, decimal=".")["a"].tolist() == ["1,5", "2,5"]
    path.write_text('a,b\n"1,234",1.200\n"2,345",950\n')
    assert read_table(path)["b"].tolist() == [1.2, 950]


def test_none_is_a_category_and_na_is_missing_unless_told(tmp_path):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal():.3f},{c},{rng.normal():.3f}" for c in ["None", "Oil", "NA", ""] * 10]
    path.write_text("\n".join(["x,heat,y", *rows]))
    frame = read_table(path)
    assert frame["heat"].value_counts().to_dict() == {"None": 10, "Oil": 10}
    assert frame.attrs["NA"] == {"heat": 10}
    data = prepare(frame, ["y"], missing="drop")
    assert len(data.X) == 20
    assert any("'heat' 10. Pass --not-na NA" in note for note in data.notes)
    kept = read_table(path, not_na=["NA"])
    assert kept["heat"].value_counts().to_dict() == {"None": 10, "Oil": 10, "NA": 10}
    assert not any("--not-na" in note for note in prepare(kept, ["y"], missing="drop").notes)
    numbers = "x,y\n" + "".join(f"{i}.5,{i % 7}.25\n" for i in range(20)) + "None,3.5\n"
    path.write_text(numbers)
    data = prepare(read_table(path), ["y"], missing="drop")
    assert data.X["x"].tolist() == [i + 0.5 for i in range(20)]
    assert "Among numbers these texts count as missing: 'x' 'None' in 1." in data.notes
