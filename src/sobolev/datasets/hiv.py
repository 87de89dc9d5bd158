"""HIV-1 drug resistance: mutations, fold changes, and treatment-selected mutations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import MultiLabelBinarizer

from sobolev._typing import AnyArray, Array, Index
from sobolev.datasets._bunch import as_requested
from sobolev.datasets._remote import RemoteFile, fetch

HIV_DRUGS = {
    "PI": ("APV", "ATV", "IDV", "LPV", "NFV", "RTV", "SQV"),
    "NRTI": ("3TC", "ABC", "AZT", "D4T", "DDI", "TDF"),
    "NNRTI": ("DLV", "EFV", "NVP"),
}
MIN_CARRIERS = 3
_ADDRESS = "https://hivdb.stanford.edu/pages/published_analysis/genophenoPNAS2006"
_CHECKSUMS = {
    "PI_DATA": "b89d2ad33300c0e936cb44292e1aee90644a047cb82a6a29fdca14e9d97af8ef",
    "NRTI_DATA": "0d3cb71bcc567257d6e985b18faa8902b8dad4fdd1170cb6a6083be844683eef",
    "NNRTI_DATA": "81a4d6265a3c20e42561e30c3e4ce38d9c61dbf99b5e3a19e8ffa375453624bb",
    "PI_TSM": "6b4e55a133b01a8d98c170edd6980e1d508093c610a0aea18d7e83c832badccc",
    "NRTI_TSM": "00818712b8a6bd1c7280f673f9ce20cd0b6f65ab222b07e77f28bfe9d5b29305",
    "NNRTI_TSM": "d80b55409e5c0acccfde58aac40032df8b70f716a5dcecc1c0fb89f30ab7894d",
}
# Consensus, no data, or the observed amino acids, with i for an insertion and d for a deletion.
_CELL = r"\.|-|[A-Zid]+"


def load_hiv(
    drug: str,
    data_home: str | Path | None = None,
    *,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load the resistance of HIV-1 isolates to a drug, with their mutations.

    There is one 0/1 column for each position and amino acid that at least three isolates carry.
    The response is the logarithm of the fold change of susceptibility. Isolates with an unreadable
    sequence or without a measurement are left out, and so are all columns that equal another one.

    Parameters
    ----------
    drug : str
        Name of the drug, one of :data:`HIV_DRUGS`, for example "APV".
    data_home : str, Path or None, default=None
        Folder with ``hiv/PI_DATA.txt`` and similar files; None is the folder in the environment
        variable ``SOBOLEV_DATA_HOME``. If neither is given, the files are downloaded once from the
        Stanford HIV drug resistance database into the cache of the user.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.
    as_frame : bool, default=False
        Whether to return the data as a DataFrame and the target as a Series.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Bunch with ``data`` (n, p) of zeros and ones, ``target`` (n,), ``feature_names`` such as
        ``"P10.F"``, ``positions`` (the position of each column), ``support`` (True for columns at
        a position of a treatment-selected mutation), ``tsm_positions`` (all such positions),
        ``drug``, ``drug_class`` and ``DESCR``.
    (data, target) : tuple, if ``return_X_y`` is True

    See Also
    --------
    count_positions : Count true and false discoveries.

    References
    ----------
    Rhee, Taylor, Wadhera, Ben-Hur, Brutlag and Shafer, "Genotypic predictors of human
    immunodeficiency virus type 1 drug resistance", PNAS 103, 2006.

    Examples
    --------
    >>> from sobolev.datasets.hiv import load_hiv
    >>> hiv = load_hiv("APV")  # doctest: +SKIP
    >>> hiv.data.shape  # doctest: +SKIP
    (767, 201)
    """
    drug_class = _class_of(drug)
    table = _read_table(_fetch(f"{drug_class}_DATA", data_home), drug)
    truth = _read_positions(_fetch(f"{drug_class}_TSM", data_home))
    X, mutations = _one_hot(table.filter(regex=r"^P\d+$"))
    X, y = _measured(X, table[drug])
    kept = _informative(X)
    X, mutations = X[:, kept], mutations[kept]
    positions = np.array([position for position, _ in mutations], dtype=np.intp)
    return as_requested(
        X,
        y,
        np.array([f"P{position}.{letter}" for position, letter in mutations], dtype=object),
        return_X_y=return_X_y,
        as_frame=as_frame,
        target_name=drug,
        positions=positions,
        support=np.isin(positions, truth),
        tsm_positions=truth,
        drug=drug,
        drug_class=drug_class,
        DESCR=f"HIV-1 drug resistance (Rhee et al., PNAS 2006): log fold change of {drug} "
        f"({drug_class}), {X.shape[0]} isolates, {X.shape[1]} mutations.",
    )


def count_positions(bunch: Any, support: Any) -> tuple[int, int]:
    """Count the distinct positions of selected mutations, true and false.

    Parameters
    ----------
    bunch : Bunch
        Data set from :func:`load_hiv`.
    support : array-like of shape (p,) or (k,)
        Mask of the selected columns, or their positions in ``data``.

    Returns
    -------
    true, false : int
        Number of positions with and without a treatment-selected mutation.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from sobolev.datasets.hiv import count_positions
    >>> bunch = Bunch(positions=np.array([10, 10, 11, 12]), tsm_positions=np.array([10]))
    >>> count_positions(bunch, [True, True, False, True])
    (1, 1)
    """
    chosen = np.asarray(support)
    n_columns = bunch.positions.size
    if chosen.dtype == bool and chosen.shape != (n_columns,):
        raise ValueError(
            f"support has {chosen.size} entries but there are {n_columns} columns; pass one entry "
            "for each column, or the positions of the selected columns."
        )
    found = np.unique(bunch.positions[chosen if chosen.size else []])
    true = int(np.isin(found, bunch.tsm_positions).sum())
    return true, int(found.size) - true


def _class_of(drug: str) -> str:
    for drug_class, drugs in HIV_DRUGS.items():
        if drug in drugs:
            return drug_class
    listed = "; ".join(f"{c}: {', '.join(drugs)}" for c, drugs in HIV_DRUGS.items())
    raise ValueError(f"drug={drug!r} is unknown; use one of {listed}.")


def _fetch(name: str, data_home: str | Path | None) -> Path:
    drug_class, kind = name.split("_")
    published = f"DATA/{name}.txt" if kind == "DATA" else f"MUTATIONLISTS/NP_TSM/{drug_class}"
    file = RemoteFile(f"hiv/{name}.txt", f"{_ADDRESS}/{published}", _CHECKSUMS[name])
    return fetch(file, data_home)


def _read_table(path: Path, drug: str) -> pd.DataFrame:
    """The isolates with a readable sequence; all values are text."""
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    cells = table.filter(regex=r"^P\d+$")
    if drug not in table or not cells.shape[1]:
        raise ValueError(
            f"{path} has no column {drug} or no columns of positions (P1, P2, …); it is not the "
            "published table."
        )
    return table[cells.apply(lambda cell: cell.str.fullmatch(_CELL)).all(axis=1)]


def _read_positions(path: Path) -> Index:
    """The first column of a list of mutations."""
    lines = (line.split() for line in path.read_text().splitlines())
    return np.unique(np.array([int(words[0]) for words in lines if words], dtype=np.intp))


def _one_hot(cells: pd.DataFrame) -> tuple[Array, AnyArray]:
    """A 0/1 column for each position and letter; a mixture of amino acids sets several.

    Returns the columns and their (position, letter), in this order.
    """
    positions = [int(str(name)[1:]) for name in cells]
    carried = [
        [(p, letter) for p, cell in zip(positions, row, strict=True) for letter in cell.strip(".-")]
        for row in cells.to_numpy()
    ]
    binarizer = MultiLabelBinarizer()
    return binarizer.fit_transform(carried).astype(float), binarizer.classes_


def _measured(X: Array, fold_change: Any) -> tuple[Array, Array]:
    """The rows with a measurement, and the logarithm of the measurement."""
    value = pd.to_numeric(fold_change.replace(["NA", ""], np.nan)).to_numpy(dtype=float)
    if (value <= 0).any():
        raise ValueError(f"fold changes of {fold_change.name} must be positive.")
    rows = ~np.isnan(value)
    return X[rows], np.log(value[rows])


def _informative(X: Array) -> Index:
    """Positions of the columns with enough ones that equal no other column."""
    common = np.flatnonzero(X.sum(axis=0) >= MIN_CARRIERS)
    _, first, counts = np.unique(X[:, common], axis=1, return_index=True, return_counts=True)
    return np.sort(common[first[counts == 1]])
