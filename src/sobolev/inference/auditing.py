"""The audit: a selector is run on planted responses, whose answer is known, on the user's columns.

The columns are real, so their dependence is the one that the selector will meet; the responses are
planted, so false discoveries can be counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from sobolev._parameters import check_count, check_fraction
from sobolev._progress import Progress
from sobolev._random import RandomState, check_generator, seeded
from sobolev._typing import Array, Index
from sobolev.conditionals.completing import completed
from sobolev.criterion import parse_columns
from sobolev.critic import allowed_kind
from sobolev.exceptions import DataWarning
from sobolev.inference.audit_log import AuditLog, fingerprint
from sobolev.inference.audit_result import LEVELS, AuditResult, AuditRun
from sobolev.inference.planting import (
    SIGNAL_TO_NOISE,
    Planted,
    beside,
    permute,
    plant,
    signal_to_noise_of,
    with_values_of,
)
from sobolev.responses import Response, read_response, take_response
from sobolev.summary import feature_units
from sobolev.tables.opening import open_table
from sobolev.tables.prepared import of_numbers
from sobolev.tables.repeats import note_of, repeated_rows
from sobolev.validation import (
    MIN_ROWS,
    feature_names,
    plain_target,
    read_groups,
    validate_rows,
)

# The kinds of responses and whether many columns are active, in the order in which they come. Ten
# make a balanced audit. Without a real response, noise stands in for its permutation.
SCHEDULE = (
    ("additive", False),
    ("noise", False),
    ("product", True),
    ("threshold", False),
    ("permuted", False),
    ("additive", True),
    ("product", False),
    ("noise", False),
    ("threshold", True),
    ("permuted", False),
)
# Share and largest number of the columns that are active.
FEW, MANY = (1 / 6, 4), (1 / 3, 20)
LEVEL = 0.1
GIVEN = "as given"


def audit(
    selector: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    n_repeats: int = 20,
    fdr: float | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    resume: str | Path | None = None,
    verbose: int = 0,
) -> AuditResult:
    """Measure the false discovery rate of a selector on the columns of a table.

    Responses with a known answer are planted on the columns of X: sums, products and steps of a
    few or of many columns, and responses that depend on none. The selector is run on each, and what
    it selects is compared with the truth.

    Parameters
    ----------
    selector : estimator
        An :class:`~sobolev.HRTSelector`, a :class:`~sobolev.KnockoffSelector`, or any object with
        ``fit(X, y)`` and ``get_support()``. It is copied, never fitted itself.
    X : array-like or DataFrame of shape (n, d)
        The columns.
    y : array-like, str or tuple of str, optional
        The real response, or the names of its columns in the DataFrame X. If it is given, its rows
        in random order are a further response without signal, planted responses take its values
        (so that labels stay labels), and their signal-to-noise ratio is near that of y; otherwise
        the ratio is 2. Copies of earlier rows are left out, as selectors do.
    groups : array-like of shape (n,), optional
        The subject of each row, if rows belong together. The selector gets them, half the noise of
        the planted responses is between subjects, and y is not permuted.
    n_repeats : int, default=20
        Number of planted responses. They go through a fixed schedule of ten: six with a signal,
        four without.
    fdr : float, optional
        The level to judge by; by default that of the selector, or 0.1 if it has none.
    n_jobs : int or None, default=None
        Number of processes; the result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Determines the responses and the random states of the selector.
    resume : str or Path, optional
        A file that keeps each finished run. If it exists, its runs are not repeated, so an audit
        that was stopped goes on. A file of another audit is refused.
    verbose : int, default=0
        1 shows a progress bar, 2 also prints a line for each run.

    Returns
    -------
    AuditResult
        With ``verdict``, ``passed``, ``fdr``, ``band``, ``power``, ``noise_finds``,
        ``null_shares``, ``most_false``, ``table()`` and ``to_json()``.

    See Also
    --------
    audit_and_choose : Tries other models of the columns if the audit fails.
    sobolev.plotting.plot_audit : The picture of the result.

    Notes
    -----
    Discoveries are counted in features: a group of columns that is tested together is true if it
    contains an active column. The model of the columns does not depend on the response, so a
    selector with ``for_table(X)`` fits it once for all responses.

    With a selector that has a parameter ``adjust``, responses are planted on the other columns, and
    all but the permuted ones also depend on the covariates, with the variance of the noise.

    The audit measures the level on these columns for the responses that were planted. It does not
    prove that the level holds for every response, nor does it see rows that depend on each other,
    unless ``groups`` tells of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import HRTSelector, audit
    >>> X = np.random.default_rng(0).standard_normal((150, 8))
    >>> result = audit(HRTSelector(scheme="split"), X, n_repeats=4, random_state=0)
    >>> result.passed
    True
    """
    check_count("n_repeats", n_repeats)
    level = getattr(selector, "fdr", None) if fdr is None else fdr
    level = LEVEL if level is None else level
    check_fraction("fdr", level, low=0.0, high=1.0)
    for method in ("fit", "get_support"):
        if not callable(getattr(selector, method, None)):
            raise TypeError(
                f"selector has no method {method}; pass a selector with fit(X, y) and "
                f"get_support(), got {type(selector).__name__}."
            )
    kind = getattr(selector, "response", "auto")
    table = open_table(X, y, groups=groups, response=kind)
    if table is None:
        X, y = take_response(X, y)
    else:
        selector = selector.encoded(table) if hasattr(selector, "encoded") else selector
        X, groups = table.X, table.groups
        y = table.response if hasattr(selector, "response") else table.y
    columns = _read(X, groups, getattr(selector, "adjust", None))
    if not _takes_gaps(selector):
        columns = replace(columns, values=columns.complete)
    response = None if y is None else _read_response(selector, y, len(columns.values))
    if response is not None and columns.groups is None:
        columns, response = _without_copies(columns, response)
    target = None if response is None else response.values
    seed = None if random_state is None else int(check_generator(random_state).integers(2**63))
    data = columns.values, columns.names, target, columns.groups
    marks = fingerprint(selector, *data, level=float(level))
    log = AuditLog(resume, marks, seed)
    seeds = np.random.SeedSequence(log.seed).spawn(1 + n_repeats)
    ratio = SIGNAL_TO_NOISE
    if target is not None:
        with threadpool_limits(1):
            ratio = signal_to_noise_of(columns.complete, target, np.random.default_rng(seeds[0]))
    done = {run.number for run in log.runs}
    todo = [number for number in range(n_repeats) if number not in done]
    with Progress(verbose) as progress:
        progress.stage("auditing", n_repeats)
        tasks = [(number, seeds[1 + number]) for number in todo]
        found = _runs(selector, columns, response, ratio, tasks, n_jobs)
        for finished, run in enumerate(found, start=n_repeats - len(todo) + 1):
            log.add(run)
            progress.step(f"response {finished} of {n_repeats}", finished)
    runs = sorted((run for run in log.runs if run.number < n_repeats), key=lambda run: run.number)
    return AuditResult(float(level), tuple(runs), ratio, type(selector).__name__)


@dataclass(frozen=True)
class AuditChoice:
    """A selector that was chosen by audits.

    Attributes
    ----------
    selector : estimator
        The first selector that passed, or the given one if none did; not fitted.
    label : str
        What it is called.
    audits : tuple of (str, AuditResult)
        All audits in their order, by the names of the selectors.
    """

    selector: Any
    label: str
    audits: tuple[tuple[str, AuditResult], ...]

    @property
    def result(self) -> AuditResult:
        """The audit of the chosen selector."""
        return dict(self.audits)[self.label]

    @property
    def passed(self) -> bool:
        """Whether the chosen selector passed."""
        return self.result.passed

    @property
    def sentence(self) -> str:
        """What was tried; empty if the given selector passed at once."""
        if self.passed and len(self.audits) == 1:
            return ""
        failed = [f"{label} (FDR {a.fdr:.2f})" for label, a in self.audits if not a.passed]
        told = f"The audit failed for the selector {', '.join(failed)}"
        if self.passed:
            return f"{told} and passed for {self.label} (FDR {self.result.fdr:.2f}), which is used."
        more = "nothing else is left to try" if len(failed) > 1 else "there is nothing else to try"
        return f"{told}; {more}, so the level is not assured on this table."


def audit_and_choose(
    selector: Any,
    X: Any,
    y: Any = None,
    *,
    resume: str | Path | None = None,
    **options: Any,
) -> AuditChoice:
    """Audit a selector and, while the audit fails, its alternatives.

    A selector offers alternatives, such as other models of the columns, by a method
    ``alternatives()`` that returns pairs of a name and a selector. They are tried in order.

    The audit looks at X and at responses that it draws itself, never at the dependence between X
    and the real y, except for one rounded number, the signal-to-noise ratio, if y is given. So the
    choice does not spoil the test of the real y.

    Parameters
    ----------
    selector, X, y
        As in :func:`audit`.
    resume : str or Path, optional
        As in :func:`audit`; the audits of alternatives have files of their own beside it.
    **options
        Other parameters of :func:`audit`. All audits use the same ``random_state``.

    Returns
    -------
    AuditChoice
        With ``selector``, ``label``, ``audits``, ``passed`` and ``sentence``.
    """
    seed = options.pop("random_state", None)
    if seed is not None and not isinstance(seed, (int, np.integer)):
        seed = int(check_generator(seed).integers(2**31))
    offered = getattr(selector, "alternatives", None)
    audits: list[tuple[str, AuditResult]] = []
    candidates = _candidates(selector, offered)
    for number, (label, candidate) in enumerate(candidates, start=1):
        path = None if resume is None else attempt_path(resume, number)
        found = audit(candidate, X, y, resume=path, random_state=seed, **options)
        audits.append((label, found))
        if found.passed:
            return AuditChoice(candidate, label, tuple(audits))
    return AuditChoice(selector, GIVEN, tuple(audits))


def attempt_path(resume: str | Path, number: int) -> Path:
    """The file of the audit of the first selector, the second, and so on."""
    path = Path(resume)
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")


def _candidates(selector: Any, offered: Any) -> Iterator[tuple[str, Any]]:
    """The selector, then its alternatives, which are asked for only if it fails."""
    yield GIVEN, selector
    if callable(offered):
        yield from ((str(label), other) for label, other in offered())


@dataclass(frozen=True)
class Columns:
    """Checked columns.

    Attributes
    ----------
    values : array of shape (n, d)
    complete : array of shape (n, d)
        The same with draws in the place of missing cells, on which responses are planted.
    labels : list or None
        Labels of the columns of a DataFrame; None for an array.
    names : list of str
        Names of the columns for the reader.
    groups : array of int or None
        Number of the subject of each row.
    adjusted : array of int
        The columns that the selector is adjusted for.
    """

    values: Array
    complete: Array
    labels: list[Any] | None
    names: list[str]
    groups: Index | None
    adjusted: Index

    @property
    def passed_on(self) -> dict[str, Index]:
        """What selectors get beside the table and the response."""
        return {} if self.groups is None else {"groups": self.groups}

    def table(self) -> Any:
        """What selectors are fitted to: an array, or a DataFrame if one was given."""
        return self.values if self.labels is None else pd.DataFrame(self.values, None, self.labels)


def _without_copies(columns: Columns, response: Response) -> tuple[Columns, Response]:
    """The rows that selectors would be fitted to: no copies of earlier ones."""
    copies = repeated_rows(columns.values, response.values)
    if not copies.any():
        return columns, response
    warnings.warn(note_of(copies), DataWarning, stacklevel=3)
    rows = np.flatnonzero(~copies)
    kept = replace(columns, values=columns.values[rows], complete=columns.complete[rows])
    return kept, response.rows(rows)


def _read(X: Any, groups: Any, adjust: Any) -> Columns:
    """The door: X is checked once, and errors name the column."""
    door = BaseEstimator()
    values = validate_rows(door, X, reset=True, gaps=True)
    if len(values) < MIN_ROWS:
        raise ValueError(f"X has {len(values)} rows; an audit needs at least {MIN_ROWS}.")
    complete, names = completed(values, np.random.default_rng(0)), feature_names(door)
    adjusted = parse_columns(adjust, len(names), names, "adjust")
    if not (np.ptp(np.delete(complete, adjusted, axis=1), axis=0) > 0).any():
        raise ValueError("all columns of X are constant; pass columns that vary.")
    labels = list(X.columns) if hasattr(X, "columns") else None
    subjects = None if groups is None else read_groups(groups, len(values))
    return Columns(values, complete, labels, names, subjects, adjusted)


def _takes_gaps(selector: Any) -> bool:
    """Whether a selector accepts missing cells; others get a draw in their place."""
    return isinstance(selector, BaseEstimator) and bool(get_tags(selector).input_tags.allow_nan)


def _read_response(selector: Any, y: Any, n: int) -> Response:
    """The response as the selector would read it; planted responses take its values."""
    if hasattr(selector, "response"):
        response = read_response(y, allowed_kind(selector.estimator, selector.response))
    else:  # a selector that reads y by itself
        response = read_response(y).with_values(plain_target(y))
    if len(response) != n:
        raise ValueError(
            f"X has {n} rows but y has {len(response)}; pass one response for each row."
        )
    return response


def _runs(
    selector: Any,
    columns: Columns,
    response: Response | None,
    ratio: float,
    tasks: list[tuple[int, np.random.SeedSequence]],
    n_jobs: int | None,
) -> Iterator[AuditRun]:
    """Finished runs as they come, from processes with one BLAS thread each."""
    if not tasks:
        return
    for_table = getattr(selector, "for_table", None)
    if callable(for_table):  # the model of the columns, once for all responses
        selector = for_table(columns.table(), **columns.passed_on)
    # The setting ends before the first result: a generator that is dropped half-way, as after an
    # error or Ctrl-C, would leave it to the next fit.
    with parallel_config(backend="loky", inner_max_num_threads=1):
        is_parallel = effective_n_jobs(n_jobs) > 1
        run = Parallel(n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
    yield from run(
        delayed(_run)(selector, columns, response, ratio, *task, is_parallel=is_parallel)
        for task in tasks
    )


def _run(
    selector: Any,
    columns: Columns,
    response: Response | None,
    ratio: float,
    number: int,
    seed: np.random.SeedSequence,
    *,
    is_parallel: bool,
) -> AuditRun:
    """Plant a response, run the selector on it, count."""
    rng = np.random.default_rng(seed)
    y = None if response is None else response.values
    planted = planted_response(
        number, columns.complete, y, ratio, rng, columns.groups, columns.adjusted
    )
    copied = _copy(selector, rng, is_parallel)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the audit measures what the warnings fear
        y = _as_read(selector, planted, response)
        if columns.labels is not None and hasattr(copied, "encoded"):
            # Prepared already: a second time would set aside what the user keeps.
            copied.fit(of_numbers(columns.values, columns.names, y, columns.groups))
        else:
            copied.fit(columns.table(), y, **columns.passed_on)
    return compared(number, planted, copied, columns.names)


def _as_read(selector: Any, planted: Planted, response: Response | None) -> Any:
    """A planted response for a selector: values of the real response are read as that one was."""
    if not hasattr(selector, "response"):
        return planted.y
    y = None if response is None else response.values
    if response is None or not (planted.kind == "permuted" or takes_values(planted.kind, y)):
        return read_response(planted.y, "number")
    return response.with_values(planted.y)


def planted_response(
    number: int,
    X: Array,
    y: Any,
    ratio: float,
    rng: np.random.Generator,
    groups: Index | None = None,
    adjusted: Index | None = None,
) -> Planted:
    """The planted response of a run.

    Parameters
    ----------
    number : int
        Place in the schedule.
    X : array of shape (n, d)
    y : array, DataFrame or None
        The real response.
    ratio : float
        Signal-to-noise ratio.
    rng : numpy.random.Generator
    groups : array of int or None
        Number of the subject of each row; a permuted y would not keep subjects together.
    adjusted : array of int or None
        Covariates: columns that are never active.

    Returns
    -------
    Planted
    """
    kind, many = SCHEDULE[number % len(SCHEDULE)]
    if kind == "permuted" and y is not None and groups is None:
        return permute(y, rng)
    share, most = MANY if many else FEW
    adjusted = np.zeros(0, dtype=np.intp) if adjusted is None else adjusted
    tested = np.delete(X, adjusted, axis=1)
    n_varying = int(np.count_nonzero(np.ptp(tested, axis=0) > 0))
    n_active = int(np.clip(share * n_varying, 1, most))
    kind = "noise" if kind == "permuted" else kind
    planted = plant(tested, kind, rng, n_active=n_active, signal_to_noise=ratio, groups=groups)
    if adjusted.size:
        planted = beside(planted, X, adjusted, rng)
    return with_values_of(planted, y) if takes_values(kind, y) else planted


def takes_values(kind: str, y: Any) -> bool:
    """Whether a planted response of this kind takes the values of the real response y."""
    return y is not None and np.ndim(y) == 1 and kind != "noise"


def _copy(selector: Any, rng: np.random.Generator, is_parallel: bool) -> Any:
    """A copy with random states of its own; within a process it uses one thread."""
    if not hasattr(selector, "get_params"):
        return deepcopy(selector)
    copied = seeded(selector, rng)
    if "random_state" in copied.get_params(deep=False):
        copied.set_params(random_state=int(rng.integers(2**31)))
    if is_parallel:
        jobs = [name for name in copied.get_params() if name.split("__")[-1] == "n_jobs"]
        copied.set_params(**dict.fromkeys(jobs, 1))
    return copied


def compared(number: int, planted: Planted, selector: Any, names: list[str]) -> AuditRun:
    """The selection of a fitted selector, compared with the truth.

    Parameters
    ----------
    number : int
        Place in the schedule.
    planted : Planted
        The response that it was fitted to.
    selector : fitted selector
    names : list of str
        Names of the columns.

    Returns
    -------
    AuditRun
    """
    support = np.asarray(selector.get_support())
    if support.dtype != bool or support.shape != (len(names),):
        raise ValueError(
            f"get_support() of {type(selector).__name__} must return True or False for each of "
            f"{len(names)} columns; got {support.dtype} of shape {support.shape}."
        )
    units: dict[str, Index] | None = getattr(selector, "units_", None)
    if units is None:
        units = feature_units(getattr(selector, "feature_groups", None), names)
    adjusted = getattr(selector, "adjusted_", ())
    units = {name: own for name, own in units.items() if not np.isin(own, adjusted).any()}
    active = np.isin(np.arange(len(names)), planted.active)
    true = {name for name, own in units.items() if active[own].any()}
    selected = [name for name, own in units.items() if support[own].any()]
    pvalues = getattr(selector, "pvalues_", None)
    null = np.zeros(0)
    if pvalues is not None:
        null = np.array([pvalues[own[0]] for name, own in units.items() if name not in true])
        null = null[np.isfinite(null)]
    return AuditRun(
        number=number,
        kind=planted.kind,
        n_active=planted.active.size,
        n_true=len(true),
        n_selected=len(selected),
        false=tuple(str(name) for name in selected if name not in true),
        n_null=null.size,
        null_counts=tuple(int(np.count_nonzero(null <= t)) for t in LEVELS) if null.size else (),
    )
