"""Response of cancer cell lines to the drug PLX4720, with genomic features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sobolev._parameters import check_fraction, check_option
from sobolev._typing import Array
from sobolev.datasets._bunch import as_requested
from sobolev.datasets._remote import RemoteFile, fetch

RESPONSES = ("Amax", "ActArea", "IC50")
_FILE = RemoteFile("plx4720/plx4720_ccle_response_gdsc_features.npz")
_DESCR = (
    "Response ({response}) of {n} cancer cell lines to PLX4720 in CCLE, with {d} genomic "
    "features from GDSC whose absolute correlation with the response is at least {least:g}. "
    "A substitute for the data of the paper (479 cell lines, 7251 CCLE features), which are no "
    "longer distributed, so that results differ from those of the paper. The drug targets BRAF, "
    "so its mutation (BRAF_mut) should be found."
)


def load_plx4720(
    data_home: str | Path | None = None,
    response: str = "Amax",
    min_correlation: float = 0.1,
    *,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load the response of cell lines to PLX4720, a substitute for the data of the paper.

    The features of GDSC (gene expression, mutations, copy numbers, tissue) are joined to the
    response in CCLE. The file cannot be downloaded; it must be in a local folder.

    Parameters
    ----------
    data_home : str, Path or None, default=None
        Folder with ``plx4720/plx4720_ccle_response_gdsc_features.npz``; None is the folder in the
        environment variable ``SOBOLEV_DATA_HOME``.
    response : {"Amax", "ActArea", "IC50"}, default="Amax"
        Measure of the response. Cell lines without it are left out.
    min_correlation : float, default=0.1
        Smallest absolute correlation with the response; features below it and constant features are
        left out. This screening of the paper uses the response, so that tests on the same rows are
        not exact afterwards. Zero keeps all features that vary.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.
    as_frame : bool, default=False
        Whether to return the data as a DataFrame and the target as a Series, indexed by cell line.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Bunch with ``data`` (n, d), ``target`` (n,), ``feature_names``, ``correlations`` (of each
        column with the target), ``cell_lines``, ``tissue`` and ``DESCR``.
    (data, target) : tuple, if ``return_X_y`` is True

    Examples
    --------
    >>> from sobolev.datasets.plx4720 import load_plx4720
    >>> plx = load_plx4720(min_correlation=0.4)  # doctest: +SKIP
    >>> "BRAF_mut" in plx.feature_names  # doctest: +SKIP
    True
    """
    check_option("response", response, RESPONSES)
    check_fraction("min_correlation", min_correlation, low=0.0, high=1.0, closed="left")
    with np.load(fetch(_FILE, data_home), allow_pickle=False) as file:
        X, y = file["X"].astype(float), file[response].astype(float)
        names, lines, tissue = file["features"], file["cell_lines"], file["tissue"]
    rows = np.isfinite(y)
    X, y, lines, tissue = X[rows], y[rows], lines[rows], tissue[rows]
    correlations = _correlations(X, y)
    kept = np.abs(correlations) >= min_correlation  # False for constant columns, which are NaN
    X, names = np.ascontiguousarray(X[:, kept]), names[kept].astype(object)
    return as_requested(
        X,
        y,
        names,
        return_X_y=return_X_y,
        as_frame=as_frame,
        target_name=response,
        index=lines,
        correlations=correlations[kept],
        cell_lines=lines,
        tissue=tissue,
        DESCR=_DESCR.format(response=response, n=y.size, d=names.size, least=min_correlation),
    )


def _correlations(X: Array, y: Array) -> Array:
    """Correlation of each column with y; NaN for a constant column."""
    varying = np.ptp(X, axis=0) > 0
    Z = X[:, varying] - X[:, varying].mean(axis=0)
    v = y - y.mean()
    found = np.full(X.shape[1], np.nan)
    found[varying] = v @ Z / (np.linalg.norm(Z, axis=0) * np.linalg.norm(v))
    return found
