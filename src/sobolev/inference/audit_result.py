"""What an audit measured: rates with their bands, null p-values, and a verdict."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from sobolev._typing import Array
from sobolev.inference.planting import SHAPES
from sobolev.validation import list_some

# Version of the layout of the JSON; raised when a field changes its meaning or goes.
SCHEMA = 1
# Levels at which null p-values are counted, and those that are reported.
LEVELS = (0.0005, 0.001, 0.002, 0.005, *(k / 100 for k in range(1, 101)))
REPORTED = (0.005, 0.05)
CONFIDENCE = 0.95
# A lower end may use the spread of the runs as if there were this many times as many, not more.
MOST_WEIGHT = 10
# Columns that the verdict names.
MAX_NAMED = 3


@dataclass(frozen=True)
class AuditRun:
    """The selection for one planted response, compared with the truth.

    Attributes
    ----------
    number : int
        Place in the schedule of responses.
    kind : str
        "additive", "product", "threshold", "noise" or "permuted".
    n_active : int
        Number of columns that the response depends on.
    n_true : int
        Number of features that contain such a column. A feature is a column, or a group of columns
        that is selected together.
    n_selected : int
        Number of selected features.
    false : tuple of str
        The selected features without an active column.
    n_null : int
        Number of p-values of features without an active column.
    null_counts : tuple of int
        How many of them are at most each of ``LEVELS``; empty if there are none.
    """

    number: int
    kind: str
    n_active: int
    n_true: int
    n_selected: int
    false: tuple[str, ...] = ()
    n_null: int = 0
    null_counts: tuple[int, ...] = ()

    @property
    def fdp(self) -> float:
        """False discovery proportion: false features among the selected, 0 if none is selected."""
        return len(self.false) / max(self.n_selected, 1)

    @property
    def power(self) -> float:
        """Share of the true features that were selected, NaN if there are none."""
        return (self.n_selected - len(self.false)) / self.n_true if self.n_true else np.nan

    @property
    def label(self) -> str:
        """The kind and the number of active columns."""
        return f"{self.kind}, {self.n_active} active" if self.kind in SHAPES else self.kind

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> AuditRun:
        """From what ``dataclasses.asdict`` gave, after JSON."""
        try:
            lists = {name: tuple(found[name]) for name in ("false", "null_counts")}
            run = cls(**(found | lists))
        except (KeyError, TypeError) as error:
            raise ValueError("this is not a run of an audit.") from error
        if not run._is_possible():
            raise ValueError("this run of an audit holds impossible numbers.")
        return run

    def _is_possible(self) -> bool:
        """Whether the fields have the right types, and the counts fit each other."""
        counts = (self.number, self.n_active, self.n_true, self.n_selected, self.n_null)
        return (
            isinstance(self.kind, str)
            and all(isinstance(name, str) for name in self.false)
            and all(type(k) is int and 0 <= k < 2**63 for k in (*counts, *self.null_counts))
            and len(self.false) <= self.n_selected <= len(self.false) + self.n_true
            and len(self.null_counts) == (len(LEVELS) if self.n_null else 0)
            and all(k <= self.n_null for k in self.null_counts)
        )


@dataclass(frozen=True)
class NullCurve:
    """The empirical distribution function of null p-values, with a pointwise 95 % band."""

    levels: Array
    shares: Array
    lower: Array
    upper: Array


@dataclass(frozen=True)
class AuditResult:
    """The error rate and the power of a selector, measured on the columns of a table.

    Attributes
    ----------
    level : float
        The false discovery rate that the selector promises.
    runs : tuple of AuditRun
        One for each planted response.
    signal_to_noise : float
        Variance of the signal over the variance of the noise in the planted responses.
    selector : str
        Class of the selector.
    """

    level: float
    runs: tuple[AuditRun, ...] = field(repr=False)
    signal_to_noise: float
    selector: str

    def __str__(self) -> str:
        return f"{self.verdict}\n\n{self.table().round(3).to_string(index=False)}"

    @property
    def fdr(self) -> float:
        """Mean false discovery proportion of all runs."""
        return float(self._fdps().mean())

    @property
    def fdr_error(self) -> float:
        """Standard error of ``fdr``; NaN for a single run."""
        fdps = self._fdps()
        return float(fdps.std(ddof=1) / np.sqrt(fdps.size)) if fdps.size > 1 else np.nan

    @property
    def band(self) -> tuple[float, float]:
        """A 95 % interval for the false discovery rate, see :func:`mean_band`."""
        return mean_band(self._fdps())

    @property
    def power(self) -> float:
        """Mean share of the true features that were selected; NaN without planted signals."""
        found = [run.power for run in self.runs if run.n_true]
        return float(np.mean(found)) if found else np.nan

    @property
    def noise_finds(self) -> float:
        """Share of the runs without a signal (noise, permuted y) that selected something."""
        found = self._samples()[2]  # without a signal, a proportion is 0 or 1
        return float(found.mean()) if found.size else np.nan

    @property
    def noise_band(self) -> tuple[float, float]:
        """A 95 % interval (Clopper and Pearson) for ``noise_finds``."""
        found = self._samples()[2]
        return mean_band(found) if found.size else (0.0, 1.0)

    @property
    def null_shares(self) -> dict[float, float]:
        """Share of null p-values that are at most 0.005 and 0.05; empty without p-values.

        Valid p-values have shares of at most these levels.
        """
        curve = self.null_curve()
        if curve is None:
            return {}
        return {level: float(curve.shares[LEVELS.index(level)]) for level in REPORTED}

    @property
    def most_false(self) -> dict[str, int]:
        """Features that were selected falsely, with the number of runs, most frequent first."""
        counts = Counter(name for run in self.runs for name in run.false)
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @property
    def passed(self) -> bool:
        """False if the measured rates are above the level beyond chance.

        That is, if a 95 % interval lies above the level: that of the false discovery rate of all
        runs, that of the runs with a signal, or that of the share of runs with finds among those
        without a signal.
        """
        lower = [mean_band(values)[0] for values in self._samples() if values.size]
        return max(lower) <= self.level

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        return f"{self._measured()}: {self._judgement()}."

    def _measured(self) -> str:
        n = f"{len(self.runs)} planted response{'' if len(self.runs) == 1 else 's'}"
        error = self.fdr_error
        spread = f" ± {error:.2f}" if error > 0 else f", at most {self.band[1]:.2f}"
        return f"The false discovery rate measured on these columns is {self.fdr:.2f}{spread} ({n})"

    def _judgement(self) -> str:
        level = f"the level of {self.level:.2f}"
        if self.passed:
            above = f"above {level}, but not beyond chance"
            return f"{level} holds" if self.fdr <= self.level else above
        named = list_some(list(self.most_false), MAX_NAMED)
        return f"{level} does NOT hold{self._reason()}; do not rely on it for {named}"

    def _reason(self) -> str:
        """Which responses exceed the level, if not all of them together do."""
        everything, signal, noise = self._samples()
        if mean_band(everything)[0] > self.level:
            return ""
        if signal.size and mean_band(signal)[0] > self.level:
            return f" (the rate is {signal.mean():.2f} for responses with a signal)"
        return f" ({noise.sum():.0f} of {noise.size} responses without a signal had finds)"

    def null_curve(self) -> NullCurve | None:
        """The distribution function of the null p-values; None without p-values.

        The p-values of one run share rows and response, so the band takes whole runs as its
        sample.
        """
        runs = [run for run in self.runs if run.n_null]
        if not runs:
            return None
        counts = np.array([run.null_counts for run in runs], dtype=float)
        sizes = np.array([run.n_null for run in runs], dtype=float)
        total = sizes.sum()
        shares = counts.sum(axis=0) / total
        residuals = counts - sizes[:, None] * shares
        variances = (residuals**2).sum(axis=0) * len(runs) / max(len(runs) - 1, 1) / total**2
        bands = []
        for share, variance in zip(shares, variances, strict=True):
            size = _size(share, variance, len(runs), total, total)
            bands.append(_band(share, size, size))
        return NullCurve(np.array(LEVELS), shares, *np.transpose(bands))

    def table(self) -> pd.DataFrame:
        """One row for each kind of response.

        Returns
        -------
        DataFrame
            With the columns response, runs, fdr (mean false discovery proportion), power (NaN
            without a signal), selected (mean number of features) and false_finds (number of runs
            with a false one).
        """
        rows = pd.DataFrame(
            {
                "response": [run.label for run in self.runs],
                "order": [(run.kind not in SHAPES, run.n_active, run.kind) for run in self.runs],
                "fdr": self._fdps(),
                "power": [run.power for run in self.runs],
                "selected": [run.n_selected for run in self.runs],
                "false_finds": [bool(run.false) for run in self.runs],
            }
        )
        found = rows.groupby("response", as_index=False).agg(
            order=("order", "first"),
            runs=("fdr", "size"),
            fdr=("fdr", "mean"),
            power=("power", "mean"),
            selected=("selected", "mean"),
            false_finds=("false_finds", "sum"),
        )
        return found.sort_values("order", ignore_index=True).drop(columns="order")

    def to_json(self) -> str:
        """Everything as strict JSON; missing values are null."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """What :meth:`to_json` writes."""
        return {
            "schema": SCHEMA,
            "selector": self.selector,
            "level": self.level,
            "signal_to_noise": self.signal_to_noise,
            "passed": self.passed,
            "verdict": self.verdict,
            "fdr": self.fdr,
            "fdr_error": _or_none(self.fdr_error),
            "band": list(self.band),
            "power": _or_none(self.power),
            "noise_finds": _or_none(self.noise_finds),
            "noise_band": list(self.noise_band),
            "null_shares": {f"{level:g}": share for level, share in self.null_shares.items()},
            "most_false": self.most_false,
            "pvalue_levels": list(LEVELS),
            "runs": [
                asdict(run) | {"fdp": run.fdp, "power": _or_none(run.power)} for run in self.runs
            ],
        }

    @classmethod
    def from_json(cls, text: str) -> AuditResult:
        """The result that :meth:`to_json` wrote."""
        foreign = ValueError(f"this is not the JSON of an audit with schema {SCHEMA}.")
        try:
            found = json.loads(text)
            derived = ("fdp", "power")
            runs = [{k: v for k, v in run.items() if k not in derived} for run in found["runs"]]
            level, ratio = float(found["level"]), float(found["signal_to_noise"])
            schema, selector = found["schema"], str(found["selector"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise foreign from error
        if schema != SCHEMA or not runs or not 0 < level <= 1 or not np.isfinite(ratio):
            raise foreign
        return cls(level, tuple(map(AuditRun.from_dict, runs)), ratio, selector)

    def _fdps(self) -> Array:
        return np.array([run.fdp for run in self.runs])

    def _samples(self) -> tuple[Array, Array, Array]:
        """False discovery proportions of all runs, of those with a signal, of those without."""
        fdps, signal = self._fdps(), np.array([run.n_active > 0 for run in self.runs])
        return fdps, fdps[signal], fdps[~signal]


def mean_band(values: Array) -> tuple[float, float]:
    """A 95 % interval for the mean of numbers between 0 and 1, also if all of them are zero.

    The upper end is that of Clopper and Pearson, as if the numbers were finds and failures: of all
    numbers between 0 and 1 with a given mean, these vary most, so a rare large value that was not
    seen is allowed for. The lower end uses the spread that was seen, by an effective sample size
    (Korn and Graubard 1998).

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.audit_result import mean_band
    >>> low, high = mean_band(np.zeros(20))
    >>> low, round(high, 3)
    (0.0, 0.168)
    """
    n, mean = values.size, float(values.mean())
    variance = float(values.var(ddof=1)) / n if n > 1 else 0.0
    return _band(mean, _size(mean, variance, n, MOST_WEIGHT * n, n), n)


def _size(mean: float, variance: float, n: int, most: float, flat: float) -> float:
    """Number of finds and failures whose mean has this variance; ``flat`` if all are the same.

    The variance was estimated from n values, which a quantile of Student's t allows for.
    """
    if mean <= 0 or mean >= 1 or n < 2:
        return flat
    tail = (1 + CONFIDENCE) / 2
    few = (stats.norm.ppf(tail) / stats.t.ppf(tail, n - 1)) ** 2
    return float(np.clip(few * mean * (1 - mean) / max(variance, 1e-300), n, most))


def _band(mean: float, n_low: float, n_high: float) -> tuple[float, float]:
    """Ends of Clopper and Pearson for a share, each with its own sample size."""
    tail = (1 - CONFIDENCE) / 2
    k_low, k_high = mean * n_low, mean * n_high
    low = 0.0 if mean <= 0 else stats.beta.ppf(tail, k_low, n_low - k_low + 1)
    high = 1.0 if mean >= 1 else stats.beta.ppf(1 - tail, k_high + 1, n_high - k_high)
    return float(low), float(high)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
