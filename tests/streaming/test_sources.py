"""Tables on disk, matrices on disk and chunks: the same fit, and errors that say where and what."""

import gzip

import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC
from sobolev.convex import Alternating, FourierMap
from sobolev.streaming import fit_stream, open_source
from sobolev.streaming.chunks import default_rows

pa = pytest.importorskip("pyarrow", reason="tables on disk need pyarrow")
import pyarrow.dataset  # noqa: E402
import pyarrow.parquet  # noqa: E402

FAST = {
    "lam": 0.03,
    "feature_map": FourierMap(32),
    "solver": Alternating(rounds=1),
    "random_state": 0,
}


def fit(*data, chunk_rows=None, **settings):
    return fit_stream(ConvexSIC(**FAST | settings), *data, chunk_rows=chunk_rows)


@pytest.fixture(scope="module")
def whole(frame):
    return fit(frame.drop(columns="y"), frame["y"])


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The table in two files of each kind; the second has its columns in another order."""
    path = tmp_path_factory.mktemp("tables")
    for name, part in (("0", frame.iloc[:2000]), ("1", frame.iloc[2000:][list("yedcba")])):
        part.to_parquet(path / f"{name}.parquet", index=False, row_group_size=700)
        part.reset_index(drop=True).to_feather(path / f"{name}.feather")
        part.to_csv(path / f"{name}.csv", index=False)
        part.to_csv(path / f"{name}.tsv.gz", index=False, sep="\t")
    return path


@pytest.mark.parametrize("pattern", ["*.parquet", "?.feather", "*.csv", "*.tsv.gz"])
@pytest.mark.parametrize("chunk_rows", [None, 999])
def test_files(folder, frame, whole, same, pattern, chunk_rows):
    found = fit(str(folder / pattern), "y", chunk_rows=chunk_rows)
    same(found, whole, frame.drop(columns="y"), frame["y"])
    assert list(found.feature_names_in_) == list("abcde")
    assert found.n_passes_ == (2 if "parquet" in pattern else 3)


def test_a_folder_a_path_and_a_dataset(folder, frame, whole, same, tmp_path):
    for name in "01":
        (tmp_path / f"{name}.parquet").write_bytes((folder / f"{name}.parquet").read_bytes())
    X, y = frame.drop(columns="y"), frame["y"]
    same(fit(tmp_path, "y"), whole, X, y)
    same(fit(pyarrow.dataset.dataset(tmp_path), "y", chunk_rows=500), whole, X, y)
    same(fit(pa.Table.from_pandas(frame), "y", chunk_rows=500), whole, X, y)
    one = fit(tmp_path / "1.parquet", "y")  # 4,203 rows: as in memory
    expected = fit(X.iloc[2000:][list("edcba")], y.iloc[2000:])
    np.testing.assert_array_equal(one.feature_importances_, expected.feature_importances_)


def test_weights_and_several_responses_by_name(frame, weights, same, tmp_path):
    table = frame.assign(w=weights, z=frame["a"] + frame["y"])
    table.to_parquet(tmp_path / "t.parquet")
    X, Y = frame[list("abcde")], table[["y", "z"]]
    found = fit(tmp_path / "t.parquet", ["y", "z"], "w")
    same(found, fit(X, Y, weights), X, Y)


def test_row_labels_are_no_feature(frame, whole, tmp_path):
    shuffled = frame.set_axis(np.arange(len(frame))[::-1])
    shuffled.to_parquet(tmp_path / "t.parquet")
    assert "__index_level_0__" in pyarrow.parquet.read_schema(tmp_path / "t.parquet").names
    found = fit(tmp_path / "t.parquet", "y")
    assert list(found.feature_names_in_) == list("abcde")
    np.testing.assert_allclose(found.feature_importances_, whole.feature_importances_, atol=1e-8)


def test_labels_and_number_types(frame, same, tmp_path):
    table = frame.assign(
        y=np.where(frame["y"] > 0, "yes", "no"),
        d=frame["d"].astype("int8"),
        c=frame["c"].astype("float32"),
        e=frame["e"] > 0,
    )
    X, y = table.drop(columns="y"), table["y"]
    table.astype({"y": "category"}).to_parquet(tmp_path / "t.parquet")
    found = fit(tmp_path / "t.parquet", "y")
    same(found, fit(X, y), X, y)
    assert found.classes_.tolist() == ["no", "yes"]


def test_a_matrix_on_disk(rows, weights, same, tmp_path):
    X, y = rows
    disk = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype="f8", shape=X.shape)
    disk[:] = X
    disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = fit(disk, y, chunk_rows=1000)
    same(found, fit(X, y), X, y)
    assert found.n_passes_ == 2
    same(fit(disk, pd.Series(y), weights), fit(X, y, weights), X, y)
    assert not hasattr(fit(np.asarray(disk), y), "n_passes_")
    with pytest.raises(ValueError, match="X has 6203 rows but y has 10"):
        fit(disk, y[:10])


def test_settings_are_checked_before_anything_is_read(tmp_path):
    disk = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype="f8", shape=(6000, 2))
    disk[:] = np.nan
    with pytest.raises(ValueError, match='feature_map="fourier"'):
        fit(disk, np.arange(6000.0), feature_map="landmark")


def test_what_joblib_shares_is_in_memory(rows, tmp_path):
    path = tmp_path / "joblib_memmapping_folder_1"
    path.mkdir()
    np.save(path / "X.npy", rows[0])
    assert open_source(np.load(path / "X.npy", mmap_mode="r"), rows[1], None, None) is None


def test_chunk_rows_are_held(folder, rows):
    source = open_source(str(folder / "*.parquet"), "y", None, 300)
    assert max(chunk.X.shape[0] for chunk in source.chunks()) == 300
    assert default_rows(50) * 50 * 8 <= 2**25
    assert default_rows(10**6) == 4096


def write(tmp_path, frame, suffix="csv"):
    path = tmp_path / f"t.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_errors_name_the_column_and_the_chunk(frame, tmp_path, suffix):
    path = write(tmp_path, frame, suffix)
    with pytest.raises(ValueError, match=r"there is no column 'Y'; did you mean 'y'\?"):
        fit(path, "Y")
    with pytest.raises(ValueError, match="sample_weight: there is no column 'w'"):
        fit(path, "y", "w")
    hole = frame.copy()
    hole.loc[4321, "c"] = np.nan
    path = write(tmp_path, hole, suffix)
    with pytest.raises(ValueError, match=r"chunk 4 \(of 't.*NaN.*column 'c' \(1 of 1000 rows\)"):
        fit(path, "y", chunk_rows=1000)
    path = write(tmp_path, frame.assign(c="red"), suffix)
    with pytest.raises(ValueError, match=r"chunk 0 .*not numbers: 'c'"):
        fit(path, "y")
    hole = frame.copy()
    hole.loc[5000, "y"] = np.nan
    path = write(tmp_path, hole, suffix)
    with pytest.raises(ValueError, match=r"chunk 5 .*y contains NaN"):
        fit(path, "y", chunk_rows=1000)


def test_text_in_a_later_chunk(frame, tmp_path):
    frame = frame.astype({"b": object})
    frame.loc[6000, "b"] = "oops"
    with pytest.raises(ValueError, match=r"chunk 6 .*not numbers: 'b'"):
        fit(write(tmp_path, frame), "y", chunk_rows=1000)


def test_files_with_other_columns(folder, frame, tmp_path):
    frame.iloc[:3000].to_csv(tmp_path / "0.csv", index=False)
    frame.iloc[3000:].rename(columns={"a": "A"}).to_csv(tmp_path / "1.csv", index=False)
    with pytest.raises(ValueError, match=r"chunk 1 \(of '1.csv'\).*lacks 'a'; it also has 'A'"):
        fit(tmp_path, "y")
    frame.iloc[3000:].drop(columns="y").to_csv(tmp_path / "1.csv", index=False)
    with pytest.raises(ValueError, match=r"chunk 1 .*there is no column 'y'"):
        fit(tmp_path, "y")


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(ValueError, match="no file matches"):
        fit(str(tmp_path / "*.parquet"), "y")
    with pytest.raises(ValueError, match="there is no file"):
        fit(tmp_path / "t.csv", "y")
    with pytest.raises(ValueError, match="holds no table"):
        fit(tmp_path, "y")
    (tmp_path / "t.xlsx").write_bytes(b"x")
    with pytest.raises(ValueError, match="spreadsheet"):
        fit(tmp_path / "t.xlsx", "y")
    for y in (None, np.zeros(3)):
        with pytest.raises(ValueError, match="must name the column"):
            fit(tmp_path / "t.xlsx", y)


def test_a_damaged_file(tmp_path, frame):
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    data = (tmp_path / "t.csv.gz").read_bytes()
    (tmp_path / "t.csv.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="damaged"):
        fit(tmp_path / "t.csv.gz", "y")


def test_columns_of_chunks_in_another_order(frame, whole):
    X, y = frame[list("abcde")], frame["y"]
    found = fit([(X.iloc[:3000], y.iloc[:3000]), (X.iloc[3000:][list("ecdba")], y.iloc[3000:])])
    np.testing.assert_allclose(found.feature_importances_, whole.feature_importances_, atol=1e-8)


def test_chunks_that_differ(rows, frame):
    X, y = rows
    with pytest.raises(ValueError, match="chunk 1: X has 4 columns, but the chunks before have 5"):
        fit([(X, y), (X[:, :4], y)])
    with pytest.raises(ValueError, match=r"chunk 1: the columns differ .*lacks 'a'"):
        fit([(frame[list("abcde")], y), (frame[list("bcde")], y)])
    with pytest.raises(ValueError, match="chunk 0: X has 6203 rows but y has 3"):
        fit([(X, y[:3])])
    with pytest.raises(ValueError, match="chunk 0: weights must be finite and not negative"):
        fit([(X, y, -y)])
    with pytest.raises(ValueError, match="labels in some chunks and numbers in others"):
        fit([(X, y), (X, np.where(y > 0, "a", "b"))])
    with pytest.raises(ValueError, match="with the chunks"):
        fit_stream(ConvexSIC(), [(X, y)], None, y)


def test_no_rows_and_no_variation(rows):
    X, y = rows
    with pytest.raises(ValueError, match="no rows"):
        fit([(X[:0], y[:0])])
    with pytest.raises(ValueError, match=r"y is constant \(1\)"):
        fit([(X, np.ones_like(y)), (X, np.ones_like(y))])
    with pytest.raises(ValueError, match="one class only"):
        fit([(X, np.full(y.size, "a"))])
    with pytest.raises(ValueError, match="every column of X is constant"):
        fit([(np.ones_like(X), y)])


def test_an_iterator_is_read_once(rows):
    with pytest.raises(ValueError, match=r"only once.*partial_fit"):
        fit(chunk for chunk in [rows])


def test_y_is_still_required(rows):
    with pytest.raises(ValueError, match="requires y"):
        fit_stream(ConvexSIC(), rows[0])


def test_numbers_of_text_files_come_back_to_the_last_bit(tmp_path):
    X = np.random.default_rng(0).standard_normal((500, 2))
    path = tmp_path / "t.csv"
    pd.DataFrame(X, columns=["x", "y"]).to_csv(path, index=False)
    (chunk,) = open_source(str(path), "y", None, 1000).chunks()
    np.testing.assert_array_equal(chunk.X[:, 0], X[:, 0])
