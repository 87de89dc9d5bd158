"""AnnData: from annotated data to a matrix, and from a fitted selector back to its annotations.

``anndata`` is not imported: an object with ``X``, ``obs`` and ``var_names`` is enough.
"""

from __future__ import annotations

from collections import Counter
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sobolev._version import __version__
from sobolev.summary import units_of
from sobolev.tables.matrices import Matrix, by_columns
from sobolev.validation import feature_names, list_some

# Columns of ``selector.summary()`` that are written, as far as a selector has them.
_RESULTS = ("importance", "statistic", "W", "pvalue", "qvalue", "selected", "note")


def is_annotated(X: Any) -> bool:
    """Whether X is annotated data, such as AnnData."""
    return all(hasattr(X, name) for name in ("X", "obs", "var_names"))


def of_annotated(adata: Any) -> Matrix:
    """The matrix of annotated data, with the columns of ``obs`` beside it.

    Parameters
    ----------
    adata : AnnData
        Its X is used, not its layers.

    Returns
    -------
    Matrix
    """
    if getattr(adata, "isbacked", False):
        raise ValueError("adata is backed by a file; pass adata.to_memory().")
    names = [str(name) for name in adata.var_names]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        shown = list_some([repr(name) for name in twice])
        raise ValueError(
            f"adata.var_names has {shown} several times; call adata.var_names_make_unique()."
        )
    X = adata.X
    if X is None:
        raise ValueError("adata.X is empty; set it, such as adata.X = adata.layers['counts'].")
    X = by_columns(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise TypeError(f"adata.X holds {X.dtype}, not a table of real numbers; convert it.")
    return Matrix(X, adata.obs, tuple(names))


def annotate(adata: Any, selector: Any, *, prefix: str = "sobolev_") -> None:
    """Write the results of a fitted selector into AnnData.

    Parameters
    ----------
    adata : AnnData
        The data that the selector was fitted to, or others with the same ``var_names``. What
        ``selector.summary()`` says of a column goes into ``adata.var``: importance, statistic and
        pvalue (or W), qvalue, selected and note. Columns that were tested together share it. What
        the run was goes into ``adata.uns``. Earlier results with the same prefix are replaced.
    selector : HRTSelector or KnockoffSelector
        Fitted.
    prefix : str, default ``"sobolev_"``
        What stands before the names of the columns. Without its last "_", it is the name of the
        entry in ``adata.uns``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> from sobolev import HRTSelector
    >>> from sobolev.tables import annotate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 4))
    >>> obs = pd.DataFrame({"response": X[:, 0] + 0.5 * rng.standard_normal(200)})
    >>> var = pd.DataFrame(index=["a", "b", "c", "d"])
    >>> adata = SimpleNamespace(X=X, obs=obs, var=var, var_names=var.index, uns={})  # or AnnData
    >>> hrt = HRTSelector(random_state=0).fit(adata, "response")
    >>> annotate(adata, hrt)
    >>> list(adata.var.index[adata.var["sobolev_selected"]]), adata.uns["sobolev"]["fdr"]
    (['a'], 0.1)
    """
    check_is_fitted(selector, "support_")
    names = [str(name) for name in adata.var_names]
    if names != feature_names(selector):
        raise ValueError(
            f"the selector was fitted to {selector.n_features_in_} columns, whose names are not "
            f"those of adata.var_names ({len(names)}); pass the data that it was fitted to."
        )
    table, home = selector.summary().set_index("feature"), np.empty(len(names), dtype=object)
    for name, columns in units_of(selector).items():
        home[columns] = name
    for label in [label for label in _RESULTS if label in table]:
        adata.var[f"{prefix}{label}"] = table.loc[home, label].to_numpy()
    seed, data = selector.random_state, getattr(selector, "table_", None)
    adata.uns[prefix.rstrip("_") or "sobolev"] = {
        "method": type(selector).__name__,
        "fdr": float(selector.fdr),
        "seed": int(seed) if isinstance(seed, Integral) else "not a number",
        "version": __version__,
        "response": selector.response_.sentence,
        "notes": [] if data is None else list(data.notes),
    }
