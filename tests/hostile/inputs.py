"""Inputs that no one wants and someone has: names, numbers, columns, tables, files."""

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pandas as pd
from hypothesis import strategies as st

NAMES = (
    *("", " ", "y", "Y", "y ", "x0", "x1", "id", "time", "status", "row names", "column 1"),
    *("a=b", "a,b", "a;b", "a\tb", "a\nb", "a\r\nb", 'a"b', "a'b", "a*", "?", "[ab]", "{a}", "a|b"),
    *("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "=cmd|' /C calc'!A0", "--help", "-t", "--x"),
    *("<script>alert(1)</script>", "<b>", "&amp;", "</style>", "$x^2$", "$", "\\frac", "%s", "{0}"),
    *("\x00", "\x07", "\x1b[31m", "\ufeffy", "\u202egnp", "é", "e\u0301", "名前", "🧬", "x" * 300),
    *(
        "nan",
        "NA",
        "None",
        "inf",
        "1",
        "1.5",
        "-0",
        "True",
        "__index_level_0__",
        "../../etc",
        "y is missing",
    ),
)
NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 1e-9, 1e9, 1e15, 1e16, 2.0**53, 2.0**63, 1e100),
    *(1e300, -1e300, 1e-300, 1.7e308, -1.7e308, 5e-324, np.nan, np.inf, -np.inf, 20240131.0),
)
FIELDS = (
    *("", " ", "1", "0", "1.5", "1,5", "1.234,5", "1,234.5", "-", "?", "NA", "nan", "inf", "-inf"),
    *("1e400", "1e-400", "1e300", "0x10", "1_000", "٣", "$5", "5 %", "5%", "True", "yes", "no"),
    *("a", "b", "2024-01-31", "31.1.2024", "=1+1", "@x", '"', '""', "'", "\x00", "é", "9" * 400),
)

names = st.one_of(st.sampled_from(NAMES), st.text(max_size=6))
floats = st.one_of(st.sampled_from(NUMBERS), st.floats(-5, 5), st.floats())


@st.composite
def number_columns(draw, n, finite=False):
    """An array of n numbers: usual, of an extreme scale, of few values, or anything."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "scaled", "shifted", "few", "constant", "any", "spike"]))
    if kind == "any" and not finite:
        return np.array([draw(floats) for _ in range(n)], dtype=float)
    z = rng.standard_normal(n)
    if kind in ("scaled", "any"):
        return z * 10.0 ** draw(st.sampled_from([-320, -300, -90, -50, 50, 90, 200, 307]))
    if kind == "shifted":
        return z + 10.0 ** draw(st.sampled_from([3, 8, 15, 16, 17, 90, 300]))
    if kind == "few":
        return rng.integers(0, draw(st.integers(1, 4)), n).astype(float)
    if kind == "constant":
        return np.full(n, draw(st.sampled_from([0.0, 1.0, 0.1, -1e300, 1e-300])))
    if kind == "spike":
        z[:] = 0
        z[: draw(st.integers(0, 3))] = draw(st.sampled_from([1.0, 1e300, 1e-300]))
    return z


def _categories(values, draw):
    return pd.Categorical(values, ordered=draw(st.booleans()))


@st.composite
def columns(draw, n):
    """A column of n rows of any type that pandas can hold."""
    kind = draw(
        st.sampled_from(
            ["number"] * 4
            + ["float32", "int", "uint8", "bool", "text", "fields", "category", "dates", "Int64"]
            + ["complex", "boolean", "string", "objects", "mixed", "durations", "sparse", "bytes"]
            + ["periods", "intervals", "int_category", "zoned", "lists", "bigints", "serial"]
        )
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    few = rng.integers(0, draw(st.integers(1, 5)), n)
    with np.errstate(all="ignore"):
        match kind:
            case "number":
                return pd.Series(draw(number_columns(n)))
            case "float32":
                return pd.Series(draw(number_columns(n)).astype(np.float32))
            case "int":
                return pd.Series(rng.integers(-(2**62), 2**62, n) if draw(st.booleans()) else few)
            case "uint8":
                return pd.Series(few.astype(np.uint8))
            case "bool":
                return pd.Series(few > 0)
            case "text":
                words = draw(st.lists(names, min_size=1, max_size=4))
                return pd.Series([words[k % len(words)] for k in few], dtype=object)
            case "fields":
                return pd.Series([draw(st.sampled_from(FIELDS)) for _ in range(n)], dtype=object)
            case "category":
                words = np.array(draw(st.lists(names, min_size=1, max_size=4)), dtype=object)
                return pd.Series(_categories([words[k % len(words)] for k in few], draw))
            case "int_category":
                return pd.Series(_categories(np.where(few > 2, np.nan, few), draw))
            case "dates" | "zoned":
                zone = "UTC" if kind == "zoned" else None
                return pd.Series(pd.to_datetime(few, unit="D").tz_localize(zone))
            case "durations":
                return pd.Series(pd.to_timedelta(few, unit="D"))
            case "periods":
                return pd.Series(pd.PeriodIndex.from_ordinals(few, freq="M"))
            case "intervals":
                return pd.Series(pd.arrays.IntervalArray.from_arrays(few, few + 1))
            case "Int64":
                return pd.Series(pd.array(np.where(few > 2, 0, few), dtype="Int64")).mask(few > 2)
            case "boolean":
                return pd.Series(pd.array(few > 0, dtype="boolean")).mask(few > 2)
            case "string":
                return pd.Series(few.astype(str), dtype="string").mask(few > 2)
            case "complex":
                return pd.Series(few + 1j)
            case "objects":
                return pd.Series([None if k > 2 else float(k) for k in few], dtype=object)
            case "mixed":
                some = [1, 2.5, "a", None, True, np.nan, "3", b"x", (1,)]
                return pd.Series([draw(st.sampled_from(some)) for _ in range(n)], dtype=object)
            case "sparse":
                return pd.Series(pd.arrays.SparseArray(few.astype(float)))
            case "bytes":
                return pd.Series([b"%d" % k for k in few], dtype=object)
            case "lists":
                return pd.Series([[int(k)] for k in few], dtype=object)
            case "bigints":
                return pd.Series([int(k) * 10**30 for k in few], dtype=object)
            case "serial":
                return pd.Series(np.arange(n))


@st.composite
def tables(draw, most_rows=40, most_columns=6, unique=True):
    """A table of columns of any type, with names of any kind; some columns are copies."""
    n = draw(st.integers(0, most_rows))
    d = draw(st.integers(0, most_columns))
    found = [draw(columns(n)) for _ in range(d)]
    if d > 1 and draw(st.booleans()):
        found[0] = found[-1]
    labels = draw(st.lists(names, min_size=d, max_size=d, unique=unique))
    frame = pd.concat(found, axis=1) if found else pd.DataFrame(index=range(n))
    frame.columns = pd.Index(labels, dtype=object)
    if n and draw(st.integers(0, 4)) == 0:
        frame.index = draw(
            st.sampled_from([np.zeros(n), np.arange(n)[::-1], list(map(str, range(n)))])
        )
    return frame


@st.composite
def responses(draw, n):
    """A response of about n rows, of any type."""
    kind = draw(
        st.sampled_from(["column", "numbers", "labels", "table", "frame", "survival", "odd"])
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    match kind:
        case "column":
            return draw(columns(n))
        case "numbers":
            return draw(number_columns(n))
        case "labels":
            return [f"c{k}" for k in rng.integers(0, draw(st.integers(1, 6)), n)]
        case "table":
            return np.column_stack(
                [draw(number_columns(n)) for _ in range(draw(st.integers(1, 3)))]
            )
        case "frame":
            return pd.DataFrame({str(k): draw(columns(n)) for k in range(draw(st.integers(0, 3)))})
        case "survival":
            y = np.zeros(n, dtype=[("event", bool), ("time", float)])
            y["event"], y["time"] = rng.random(n) < draw(st.floats(0, 1)), draw(number_columns(n))
            return y
    odd = [
        None,
        3,
        "y",
        "",
        [],
        [[]],
        {},
        b"",
        np.zeros((n, 2, 2)),
        np.array("a"),
        object(),
        range(n),
    ]
    return draw(st.sampled_from(odd))


# -- bytes ---------------------------------------------------------------------------------------


@st.composite
def damaged(draw, content):
    """Bytes with some of them lost, changed, doubled or cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["cut", "flip", "insert", "drop", "double", "zero"])):
            case "cut":
                del data[at:]
            case "flip":
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "insert":
                data[at:at] = draw(st.binary(min_size=1, max_size=4))
            case "drop":
                del data[at : at + draw(st.integers(1, 64))]
            case "double":
                data[at:at] = data[at : at + 64]
            case "zero":
                data[at : at + 16] = bytes(len(data[at : at + 16]))
    return bytes(data)


@st.composite
def text_tables(draw):
    """The bytes of a text table: any fields, delimiters, line ends, quotes and encodings."""
    d, n = draw(st.integers(1, 5)), draw(st.integers(0, 12))
    sep = draw(st.sampled_from([",", ";", "\t", "|", " "]))
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n", "\r"], ["\n", "\n\n"]]))
    header = draw(st.lists(names, min_size=d, max_size=d))
    fields = st.one_of(st.sampled_from(FIELDS), st.floats().map(repr), st.text(max_size=4))
    common = st.floats(-9, 9).map(repr) if draw(st.booleans()) else fields
    rows = [header]
    for _ in range(n):
        width = d if draw(st.integers(0, 9)) else draw(st.integers(0, 7))
        rows.append([draw(common) for _ in range(width)])
    if draw(st.booleans()):
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=sep, lineterminator=draw(st.sampled_from(ends))).writerows(
            [[field.replace("\0", "") for field in row] for row in rows]
        )
        text = buffer.getvalue()
    else:
        text = "".join(sep.join(row) + draw(st.sampled_from(ends)) for row in rows)
    codec = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-16-le"]))
    content = text.encode(codec, errors="replace")
    return draw(damaged(content)) if draw(st.booleans()) else content


def _zipped(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", content)
    return buffer.getvalue()


PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": _zipped,
}


def arrow_bytes(frame, kind):
    """A table as Parquet or Feather."""
    buffer = io.BytesIO()
    if kind == ".parquet":
        frame.to_parquet(buffer, index=False)
    else:
        frame.to_feather(buffer)
    return buffer.getvalue()


@st.composite
def changed_json(draw, content):
    """JSON with one or two of its values exchanged or lost."""
    whole = json.loads(content)
    for _ in range(draw(st.integers(1, 2))):
        parent, key, node = None, None, whole
        while isinstance(node, (dict, list)) and node and draw(st.integers(0, 3)):
            parent = node
            key = draw(
                st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))
            )
            node = node[key]
        if parent is None:
            continue
        if draw(st.integers(0, 4)) == 0:
            del parent[key]
        else:
            odd = [None, 0, -1, 1e308, 10**400, "", "x", [], {}, True, [1], {"a": 1}]
            parent[key] = draw(st.sampled_from(odd))
    return json.dumps(whole).encode()
