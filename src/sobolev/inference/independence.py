r"""``sic_test``: a test of independence between features and response.

For importances fixed at uniform the criterion is a quadratic form of the mean embedding,

.. math::

    \mathrm{SIC} = \tfrac12 \operatorname{tr} M^\top A^{-1} M
                 = \tfrac{1}{2 n^2} \|F^\top \Psi\|^2, \qquad F = \Phi A^{-1/2},

with F computed once, so that a permutation of the response costs one small matrix product. The test
evaluates it for several kernels on x (linear, four bandwidths, and each feature alone) and several
encodings of y (linear, four bandwidths), standardises each by its permutation distribution and
takes the largest. The family is treated alike under every permutation, so the p-value is exact
whatever the family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from sobolev._progress import Progress
from sobolev._random import RandomState, check_generator
from sobolev._sample import report_constant
from sobolev._standardize import Standardizer
from sobolev._threads import blas_threads
from sobolev._typing import Array, Index
from sobolev.conditionals.completing import completed
from sobolev.convex.kernel_family import KernelCritic, kernel_family, response_bases
from sobolev.inference.permutation import permutation_pvalue, permutations
from sobolev.responses import Response, read_training
from sobolev.tables.opening import open_table
from sobolev.tables.repeats import without_copies
from sobolev.targets import TargetEncoder
from sobolev.validation import read_groups


@dataclass(frozen=True)
class SICTestResult:
    """Result of :func:`sic_test`.

    Attributes
    ----------
    statistic : float
        The largest standardised SIC over the family of kernels.
    pvalue : float
        Permutation p-value, at least 1 / (n_permutations + 1).
    importances : array of shape (d,)
        Importances of the features under the joint kernel with the largest standardised SIC.
    null : array of shape (n_permutations,)
        The statistic under permutation.
    sic : float
        The criterion under that kernel.
    kernel : str
        Name of that kernel and of the encoding of y.
    response : Response
        The response as it was read; ``response.sentence`` says how.
    """

    statistic: float
    pvalue: float
    importances: Array
    null: Array
    sic: float
    kernel: str
    response: Response

    def __repr__(self) -> str:
        return f"SICTestResult(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g})"


def sic_test(
    X: Any,
    y: Any = None,
    *,
    n_permutations: int = 999,
    blocks: Any = None,
    groups: Any = None,
    response: str = "auto",
    random_state: RandomState = None,
) -> SICTestResult:
    """Test whether y is independent of X, by permutation.

    Parameters
    ----------
    X : array-like, DataFrame or Prepared, of shape (n, d)
        A DataFrame is taken as it is, as in :meth:`HRTSelector.fit <sobolev.HRTSelector.fit>`.
        Missing cells are drawn once, given the other columns. Without blocks and groups, copies of
        earlier rows are left out, as there.
    y : array-like, str or tuple of str
        Numbers or labels, one or several columns; a structured array of survival times; or the
        names of its columns in the DataFrame X, from which they are taken out.
    n_permutations : int, default=999
        Number of permutations.
    blocks : array-like of shape (n,), optional
        Labels of batches or strata; rows are permuted only within them. This asks whether X and y
        depend on each other within the blocks.
    groups : array-like of shape (n,) or str, optional
        Subject of each row, if rows belong together, or the name of its column in X. Subjects are
        permuted as a whole, each among those with as many rows, which keep their order.
    response : str, default="auto"
        How y is read: "number", "count", "grades", "classes" or "survival", see
        :func:`~sobolev.responses.read_response`.
    random_state : int, Generator, RandomState or None, default=None
        Determines the permutations.

    Returns
    -------
    SICTestResult

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import sic_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> dependent = sic_test(X, np.sin(2 * X[:, 0]), n_permutations=199, random_state=0)
    >>> dependent.pvalue
    0.005
    >>> int(dependent.importances.argmax())
    0
    >>> sic_test(X, rng.normal(size=100), n_permutations=199, random_state=0).pvalue > 0.05
    True
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations={n_permutations} must be at least 1.")
    table = open_table(X, y, groups=groups, response=response, reference=True)
    if table is not None:
        X, y, groups = table.filled(with_response=False), table.response, table.groups
        blocks = None if blocks is None else np.asarray(blocks)[table.rows]
    reader = BaseEstimator()
    X, read, p, _ = read_training(reader, X, y, response)
    if blocks is None and groups is None:
        X, read, p = without_copies(X, read, p)
    if np.isnan(X).any():
        X = completed(X, np.random.default_rng(0))
    y = read.values
    standardizer = Standardizer.fit(X, p)
    report_constant(standardizer.varying, getattr(reader, "feature_names_in_", None), 3)
    Z = standardizer.transform(X)
    rng = check_generator(random_state)
    encoder = TargetEncoder("typed").fit(y, p)
    psi = encoder.transform(y)
    subjects = _check_exchange(psi, blocks, groups)
    with blas_threads(Z.shape[0]):
        responses = response_bases(psi, p, encoder.classes_ is None)
        critics = kernel_family(Z, p, rng)
        order = permutations(Z.shape[0], n_permutations, rng, blocks, subjects)
        # Rows: the members of the family, by critic and response. The observed value comes first.
        with Progress(0) as progress:
            progress.stage("permuting", len(responses) * (n_permutations + 1))
            values = np.stack(
                [
                    _permuted_sic(critics, psi, order, partial(_report, progress, number))
                    for number, psi in enumerate(responses.values())
                ],
                axis=1,
            ).reshape(-1, order.shape[0] + 1)
        spread = values.std(axis=1, keepdims=True)
        scores = (values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
        statistics = scores.max(axis=0)
        # Importances come from the critic of all features with the largest score.
        joint = sum(critic.columns.size == Z.shape[1] for critic in critics) * len(responses)
        winner = int(scores[:joint, 0].argmax())
        critic, basis = critics[winner // len(responses)], list(responses)[winner % len(responses)]
        importances = np.zeros(X.shape[1])
        importances[standardizer.varying] = critic.importances(Z, responses[basis], p)
    return SICTestResult(
        statistic=float(statistics[0]),
        pvalue=permutation_pvalue(float(statistics[0]), statistics[1:]),
        importances=importances if table is None else table.sums(importances),
        null=statistics[1:],
        sic=float(values[winner, 0]),
        kernel=f"x: {critic.name}; y: {basis}",
        response=read,
    )


def _check_exchange(psi: Array, blocks: Any, groups: Any) -> Index | None:
    """The number of the subject of each row, if there are subjects.

    Raises an error if no permutation would change the response.
    """
    n = psi.shape[0]
    if blocks is not None and groups is not None:
        raise ValueError("pass blocks or groups, not both.")
    if groups is not None:
        subjects = read_groups(groups, n)
        sizes = np.bincount(subjects)
        if np.unique(sizes).size == sizes.size:
            raise ValueError(
                f"the {sizes.size} subjects in groups have different numbers of rows, so none can "
                "be exchanged; keep as many rows of each."
            )
        return subjects
    if blocks is None:
        return None
    if len(blocks) != n:
        raise ValueError(f"blocks has {len(blocks)} entries for {n} rows.")
    frame = pd.DataFrame(psi).groupby(np.asarray(blocks), sort=False)
    if not (frame.max() - frame.min() > 1e-9).to_numpy().any():
        raise ValueError(
            "y does not vary within any block, so rows permuted within blocks say nothing; if the "
            "blocks are subjects, pass them as groups, which are permuted as a whole."
        )
    return None


def _report(progress: Progress, number: int, done: int, total: int) -> None:
    """Say how many permutations are done, of the basis of y with this number."""
    progress.step(f"basis {number + 1}, {done:,} of {total:,}", number * total + done)


def _permuted_sic(
    critics: list[KernelCritic],
    psi: Array,
    order: Index,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Array:
    """SIC of each critic for the response as it is, then permuted: |F' psi|² / (2 n²).

    ``report`` hears how many of how many responses are done.
    """
    n, k = psi.shape
    factors = np.vstack([critic.factor.T for critic in critics])
    first = np.cumsum([0] + [critic.factor.shape[1] for critic in critics[:-1]])
    rows = np.vstack([np.arange(n), order])
    out = np.empty((len(critics), rows.shape[0]))
    batch = max(1, 2**21 // (k * factors.shape[0]))
    for start in range(0, rows.shape[0], batch):
        part = rows[start : start + batch]
        stacked = psi[part.T].reshape(n, -1)
        squares = np.square(factors @ stacked).reshape(factors.shape[0], len(part), k).sum(axis=2)
        out[:, start : start + len(part)] = np.add.reduceat(squares, first, axis=0)
        report(start + len(part), rows.shape[0])
    return out / (2 * n**2)
