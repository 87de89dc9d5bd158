import bz2
import csv
import gzip
import lzma
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from sobolev.tables import read_table, write_table
from sobolev.tables.text import sniff

FRAME = pd.DataFrame({"a": [1.5, 2.5, -3.0], "b": [10, 20, 30], "c": ["u", "v", "w"]})
TEXT = FRAME.to_csv(index=False)


def write(path, content, encoding="utf-8"):
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def test_numbers_come_back_to_the_last_bit(tmp_path):
    numbers = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-50, 50).repeat(10)
    path = write(tmp_path / "t.csv", pd.DataFrame({"x": numbers}).to_csv(index=False))
    np.testing.assert_array_equal(read_table(path)["x"], numbers)


@pytest.mark.parametrize(
    ("name", "sep"),
    [
        ("t.csv", ","),
        ("t.csv", ";"),
        ("t.CSV", "\t"),
        ("t.tsv", "\t"),
        ("t.tab", "\t"),
        ("t.txt", "|"),
        ("t.txt", " "),
        ("t.dat", ";"),
    ],
)
def test_delimiters_are_found(tmp_path, name, sep):
    path = write(tmp_path / name, FRAME.to_csv(index=False, sep=sep))
    pd.testing.assert_frame_equal(read_table(path), FRAME, check_column_type=False)


def test_a_comma_in_quotes_or_numbers_is_no_delimiter():
    assert sniff('a;b\n1,5;2,5\n"x,y";3,1\n') == ";"
    assert sniff('a,b\n"x;y;z",2\n') == ","
    assert sniff("a\n1\n2\n") == ","


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_packed_text(tmp_path, suffix, pack):
    path = write(tmp_path / f"t.csv{suffix}", pack(TEXT.encode()))
    pd.testing.assert_frame_equal(read_table(path), FRAME, check_column_type=False)


def test_zip_holds_one_table(tmp_path):
    path = tmp_path / "t.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("t.csv", TEXT)
    pd.testing.assert_frame_equal(read_table(path), FRAME, check_column_type=False)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other.csv", TEXT)
    with pytest.raises(ValueError, match="holds 2 files"):
        read_table(path)


def test_zst_is_read_or_says_what_is_missing(tmp_path, monkeypatch):
    path = write(tmp_path / "t.csv.zst", b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match="pip install zstandard"):
        read_table(path)
    monkeypatch.undo()
    zstandard = pytest.importorskip("zstandard")
    write(path, zstandard.compress(TEXT.encode()))
    pd.testing.assert_frame_equal(read_table(path), FRAME, check_column_type=False)
    write(path, zstandard.compress(TEXT.encode())[:12])
    with pytest.raises(ValueError, match=r"damaged|empty|has"):
        read_table(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zip"])
def test_a_damaged_archive(tmp_path, suffix):
    path = write(tmp_path / f"t.csv{suffix}", TEXT)
    with pytest.raises(ValueError, match=f"damaged or not a {suffix} file"):
        read_table(path)


def test_a_truncated_archive(tmp_path):
    body = FRAME.sample(5000, replace=True, random_state=0).to_csv(index=False)
    path = write(tmp_path / "t.csv.gz", gzip.compress(body.encode())[:-500])
    with pytest.raises(ValueError, match="damaged"):
        read_table(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_with_a_mark_need_no_option(tmp_path, encoding):
    path = write(tmp_path / "t.csv", "größe,y\n1,2\n3,4\n", encoding)
    assert list(read_table(path).columns) == ["größe", "y"]


def test_other_encodings_name_the_remedy(tmp_path):
    path = write(tmp_path / "t.csv", "größe,y\n1,2\n3,4\n", "latin-1")
    with pytest.raises(ValueError, match=r"not UTF-8 text \(byte 0xf6\).*--encoding latin-1"):
        read_table(path)
    assert list(read_table(path, encoding="latin-1").columns) == ["größe", "y"]
    with pytest.raises(ValueError, match="'klingon' is unknown"):
        read_table(path, encoding="klingon")


def test_a_wrong_byte_far_behind_the_first_lines(tmp_path):
    body = b"a,b\n" + b"1,2\n" * 40_000 + b"\xe9,3\n"
    with pytest.raises(ValueError, match=r"byte 0xe9.*--encoding"):
        read_table(write(tmp_path / "t.csv", body))


def test_decimal_comma_and_missing_marks(tmp_path):
    path = write(tmp_path / "t.csv", "a;b\n1,5;?\n2,5;4,0\n")
    read = read_table(path, decimal=",", na=["?"])
    np.testing.assert_array_equal(read["a"], [1.5, 2.5])
    assert read["b"].isna().tolist() == [True, False]
    with pytest.raises(ValueError, match="check --decimal"):
        read_table(path, decimal=";")


def test_row_names_without_a_header_as_r_writes_them(tmp_path):
    path = write(tmp_path / "t.tsv", "a\tb\nr1\t1\t2\nr2\t3\t4\n")
    read = read_table(path)
    assert list(read.columns) == ["row names", "a", "b"]
    np.testing.assert_array_equal(read["b"], [2, 4])


def test_blank_lines_quotes_and_blanks_around_names(tmp_path):
    path = write(tmp_path / "t.csv", 'a, "b c" ,d\n\n1,"x, y",2\n\n3,"z\nz",4\n\n')
    read = read_table(path)
    assert list(read.columns) == ["a", "b c", "d"]
    assert read["b c"].tolist() == ["x, y", "z\nz"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n  \n", "is empty"),
        ("a,b\n", "header but no rows"),
        ("a,b\n1,2\n3\n4,5\n", "line 3 of 't.csv' has 1 fields, but the header has 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3 of 't.csv' has 3 fields"),
        ("a,b,a\n1,2,3\n", "several columns named 'a'"),
        ("a,b\n1,2\x00\n", "is not text"),
    ],
)
def test_bad_text(tmp_path, content, message):
    path = write(tmp_path / "t.csv", content)
    with pytest.raises(ValueError, match=message):
        read_table(path)


def test_an_open_quote_in_a_large_file(tmp_path):
    path = write(tmp_path / "t.csv", 'a,b\n1,"2\n' + "3,4\n" * 40_000)
    with pytest.raises(ValueError, match="quote that is not closed"):
        read_table(path)


def test_no_file_a_folder_and_other_kinds(tmp_path):
    write(tmp_path / "data.csv", TEXT)
    with pytest.raises(ValueError, match=r"no file .*did you mean 'data.csv'\?"):
        read_table(tmp_path / "dta.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match="save the sheet as CSV"):
        read_table(write(tmp_path / "t.xlsx", b"PK"))
    with pytest.raises(ValueError, match="use one that ends in"):
        read_table(write(tmp_path / "t.json", "{}"))
    for sep in ("ab", ""):
        with pytest.raises(ValueError, match="--sep"):
            read_table(tmp_path / "data.csv", sep=sep)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.parquet.gz", "t.csv", "t.tsv.xz"])
def test_what_is_written_is_read(tmp_path, name):
    if not name.startswith(("t.csv", "t.tsv")):
        pytest.importorskip("pyarrow")
    path = write_table(FRAME, tmp_path / name)
    pd.testing.assert_frame_equal(
        read_table(path), FRAME, check_column_type=False, check_dtype=False
    )


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_bad_arrow_files(tmp_path, name):
    pytest.importorskip("pyarrow")
    path = write_table(FRAME.sample(500, replace=True, random_state=0), tmp_path / name)
    whole = path.read_bytes()
    write(path, whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cut short") as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
    write(path, TEXT)
    with pytest.raises(ValueError, match="cut short or of another kind"):
        read_table(path)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_without_pyarrow_the_message_says_what_to_install(tmp_path, name, monkeypatch):
    path = write(tmp_path / name, b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        read_table(path)


def test_names_that_are_not_text_and_an_index(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({("a", 1): [1.0, 2.0], ("b", 2): [3.0, 4.0]})
    frame.to_parquet(tmp_path / "tuple.parquet")
    assert list(read_table(tmp_path / "tuple.parquet").columns) == ["a 1", "b 2"]
    named = FRAME.set_index("c")
    named.to_parquet(tmp_path / "index.parquet")
    assert "c" in read_table(tmp_path / "index.parquet").columns
    FRAME[["a"]].set_axis([7], axis=1).to_parquet(tmp_path / "number.parquet")
    assert list(read_table(tmp_path / "number.parquet").columns) == ["7"]


def test_an_empty_arrow_table(tmp_path):
    pytest.importorskip("pyarrow")
    path = write_table(FRAME.head(0), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="columns but no rows"):
        read_table(path)


def test_an_open_quote_when_other_code_has_raised_the_limit_of_fields(tmp_path):
    """``scipy.io.arff`` sets ``csv.field_size_limit`` for the whole process."""
    path = write(tmp_path / "t.csv", 'a,b\n1,"2\n' + "3,4\n" * 40_000)
    before = csv.field_size_limit(2**31 - 1)
    try:
        with pytest.raises(ValueError, match="quote that is not closed"):
            read_table(path)
    finally:
        csv.field_size_limit(before)
