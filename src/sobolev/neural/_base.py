"""What NeuralSIC and the Sobolev-penalised predictors share: parameters, members, storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sobolev._parameters import check_count, check_fraction, check_number, check_option
from sobolev._progress import Progress
from sobolev._random import RandomState, check_generator, spawn
from sobolev._sample import (
    Folds,
    Sample,
    choose_lam,
    merge_equal_rows,
    report_constant,
    spread,
    stratified_folds,
    training_rows,
    varying_groups,
)
from sobolev._standardize import Standardizer
from sobolev._typing import AnyArray, Array
from sobolev.criterion import Groups
from sobolev.neural.fitting import (
    ROUND_SHARE,
    Design,
    Ensemble,
    Member,
    Recipe,
    fit_members,
    network_values,
)
from sobolev.neural.training import SCHEDULES, Settings
from sobolev.selection import SICSelectorMixin
from sobolev.summary import SummaryMixin
from sobolev.targets import TargetEncoder
from sobolev.validation import validate_rows

if TYPE_CHECKING:
    from typing import Self

# Up to this many rows equal ones are merged and the order of rows does not matter.
MERGE_ROWS = 5000
# The path of lam for ``lam="auto"``; the reference is kept unless another is clearly better.
LAMS = (0.1, 0.03, 0.01, 0.003, 0.001)
# Held-out rows are looked at so many times.
LOOKS = 40


def resolve_device(device: Any) -> torch.device | None:
    """The device to train on; None is the CPU, where numpy does the work."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.backends.mps.is_available():
            return torch.device("mps")
        return None
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(
            f'device={device!r} is unknown; use "auto", "cpu", "cuda", "cuda:1" or "mps".'
        ) from None
    if found.type not in ("cpu", "cuda", "mps"):
        raise ValueError(f'device={device!r} is not supported; use "auto", "cpu", "cuda" or "mps".')
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f'device={device!r}: CUDA is not available here; use device="auto".')
    if found.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f'device={device!r}: MPS is not available here; use device="auto".')
    return None if found.type == "cpu" else found


@dataclass(frozen=True)
class Prepared:
    """The sample, the groups of its columns, and the folds for ``lam="auto"``."""

    sample: Sample
    groups: Groups | None
    folds: Folds


@dataclass
class Training:
    """What training gives: the ensembles, lam and the risks that chose it, the seed used."""

    ensembles: list[Ensemble]
    lam: float
    lam_risks: Array | None
    seed: int


class NeuralEstimator(SummaryMixin, SICSelectorMixin, BaseEstimator):
    """Training of an ensemble of networks with a Sobolev penalty; subclasses say for what."""

    lam: Any
    epsilon: float
    feature_groups: Any
    n_members: int
    aggregate: str
    recursions: int
    batch_size: Any
    max_iter: int
    learning_rate: float
    betas: Any
    weight_decay: float
    schedule: str
    eta_step: float
    early_stopping: bool
    validation_fraction: float
    patience: int
    gradient: str
    device: Any
    cv: Any
    warm_start: bool
    random_state: RandomState
    n_jobs: int | None
    verbose: int

    def save(self, path: str | Path) -> Path:
        """Write the fitted estimator to a file that holds numbers and text, no code.

        Read it with :meth:`load`. A module of your own is saved by its weights; pass the callable
        that makes it to :meth:`load`.
        """
        from sobolev.neural.storage import save_estimator

        return save_estimator(self, path)

    @classmethod
    def load(cls, path: str | Path, module: Any = None) -> Self:
        """Read an estimator that :meth:`save` wrote; nothing in the file is executed.

        ``module`` is the callable of a critic or network of your own, if there was one.
        """
        from sobolev.neural.storage import load_estimator

        return load_estimator(cls, path, module)

    def _check_training(self) -> None:
        if isinstance(self.lam, str):
            check_option("lam", self.lam, ["auto"])
        else:
            check_number("lam", self.lam)
        for name in ("epsilon", "learning_rate"):
            check_number(name, getattr(self, name), positive=True)
        for name in ("weight_decay", "eta_step"):
            check_number(name, getattr(self, name))
        for name in ("n_members", "recursions", "max_iter", "patience"):
            check_count(name, getattr(self, name))
        sizes = np.atleast_1d(np.asarray(self.batch_size, dtype=object))
        if not sizes.size:
            raise ValueError("batch_size is empty; give it at least one size.")
        for size in sizes:
            check_count("batch_size", size)
        check_option("aggregate", self.aggregate, ["arithmetic", "geometric"])
        check_option("schedule", self.schedule, SCHEDULES)
        check_option("gradient", self.gradient, ["auto", "closed", "autograd"])
        betas = np.atleast_1d(np.asarray(self.betas, dtype=object))
        if betas.size != 2:
            raise ValueError(f"betas={self.betas!r} must be two numbers in [0, 1).")
        for beta in betas:
            check_fraction("betas", beta, low=0.0, high=1.0, closed="left")
        check_fraction("validation_fraction", self.validation_fraction, low=0.0, high=0.5)

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        encoder: TargetEncoder,
        *,
        whiten: bool,
        stacklevel: int,
    ) -> Prepared:
        """Validate, encode and standardise the rows of positive weight.

        Warnings point ``stacklevel`` calls up, to the line that called ``fit``.
        """
        names = getattr(X, "columns", None)
        X, y, p, folds = training_rows(self, X, y, sample_weight)
        self.encoder_ = encoder.fit(y, p)
        psi = encoder.transform(y) if whiten else encoder.standardized(y)
        counted = isinstance(folds, int) or self.lam != "auto"
        if counted and X.shape[0] <= MERGE_ROWS:
            X, psi, p = merge_equal_rows(X, psi, p, ordered=True)
        self.standardizer_ = Standardizer.fit(X, p)
        varying = self.standardizer_.varying
        report_constant(varying, names, stacklevel)
        groups = varying_groups(self.feature_groups, varying, names)
        return Prepared(Sample(self.standardizer_.transform(X), psi, p), groups, folds)

    def _settings(self, *, mirror: bool = False) -> Settings:
        return Settings(
            lam=None,
            epsilon=float(self.epsilon),
            learning_rate=float(self.learning_rate),
            betas=(float(self.betas[0]), float(self.betas[1])),
            weight_decay=float(self.weight_decay),
            schedule=self.schedule,
            eta_step=float(self.eta_step),
            eta_relative=not mirror,
            eta_decay=0.0 if mirror else 0.99,
            closed_form=self.gradient != "autograd",
        )

    def _train(
        self,
        data: Prepared,
        designs: Sequence[Design],
        start: list[Ensemble] | None,
        *,
        mirror: bool = False,
    ) -> Training:
        """Train n_members members for each design and batch size.

        ``start`` are the ensembles of an earlier fit, ``mirror`` asks for the paper's step on eta
        and its last value as the importances.
        """
        rng = check_generator(self.random_state)
        recipe = Recipe(
            settings=self._settings(mirror=mirror),
            max_iter=int(self.max_iter),
            recursions=int(self.recursions),
            groups=data.groups,
            device=resolve_device(self.device),
            eta_of_state=mirror,
            seed=int(rng.integers(2**32)),
        )
        with Progress(self.verbose) as progress:
            lam, risks = self._choose_lam(data, designs[0], recipe, rng, progress)
            if self.early_stopping:
                every = max(1, self.max_iter // LOOKS)
                recipe = replace(recipe, every=every, patience=int(self.patience))
            members = self._members(data.sample, designs, lam, rng)
            progress.stage(f"training at lam={lam:g}", self._total_updates())
            report = self._reporter(progress)
            ensembles = fit_members(data.sample, members, recipe, start, self.n_jobs, report)
        return Training(ensembles, lam, risks, recipe.seed)

    def _choose_lam(
        self,
        data: Prepared,
        design: Design,
        recipe: Recipe,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[float, Array | None]:
        """The lam given, or the one of the best held-out risk; and the risks (folds, lams).

        All values and folds are members of one ensemble.
        """
        if not isinstance(self.lam, str):
            return float(self.lam), None
        sample, folds = data.sample, data.folds
        folds = stratified_folds(sample, folds) if isinstance(folds, int) else folds
        reference = float(type(self)().lam)
        if not folds:
            return reference, None
        progress.stage("choosing lam", self._total_updates())
        size = int(np.atleast_1d(self.batch_size)[0])
        rows = np.arange(sample.p.size)
        seed = int(rng.integers(2**63))  # every lam sees the same batches
        members = [
            Member(design, size, lam, child, np.setdiff1d(rows, fold), fold)
            for lam in LAMS
            for fold, child in zip(folds, spawn(seed, len(folds)), strict=True)
        ]
        looking = replace(recipe, every=recipe.max_iter, patience=1)
        found = fit_members(sample, members, looking, None, self.n_jobs, self._reporter(progress))
        risks = np.concatenate([ensemble.history.risks[-1] for ensemble in found])
        table = risks.reshape(len(LAMS), len(folds)).T
        return choose_lam(table, LAMS, reference), table

    def _held_out(self, sample: Sample) -> list[Any]:
        """Sets of held-out rows for early stopping, dealt to the members in turn."""
        if not self.early_stopping:
            return [None]
        folds = stratified_folds(sample, round(1 / self.validation_fraction))
        return list(folds) or [None]

    def _members(
        self, sample: Sample, designs: Sequence[Design], lam: float, rng: np.random.Generator
    ) -> list[Member]:
        rows, folds = np.arange(sample.p.size), self._held_out(sample)
        sizes = [int(b) for b in np.atleast_1d(self.batch_size) for _ in range(self.n_members)]
        pairs = [(design, size) for design in designs for size in sizes]
        members = []
        for i, child in enumerate(rng.spawn(len(pairs))):
            fold = folds[i % len(folds)]
            own = rows if fold is None else np.setdiff1d(rows, fold)
            members.append(Member(*pairs[i], lam, child, own, fold))
        return members

    def _total_updates(self) -> int:
        share = max(1, round(ROUND_SHARE * self.max_iter))
        return int(self.max_iter + (self.recursions - 1) * share)

    def _reporter(self, progress: Progress) -> Any:
        if not self.verbose:
            return None
        share = max(1, round(ROUND_SHARE * self.max_iter))

        def report(number: int, done: int, objective: float) -> None:
            progress.step(
                f"round {number}, update {done}, SIC {objective:.5f}", (number - 1) * share + done
            )

        return report

    def _store(self, training: Training, groups: Groups | None, aggregate: str) -> None:
        ensembles = self._ensembles = training.ensembles
        self.lam_ = float(training.lam)
        self.lam_risks_ = training.lam_risks
        self.lam_path_ = None if training.lam_risks is None else np.array(LAMS)
        varying = self.standardizer_.varying
        eta = np.concatenate([e.eta for e in ensembles])
        squared = np.concatenate([e.moments.squared for e in ensembles])
        combined = combine(eta, aggregate)
        if groups is not None:
            self.group_importances_, self.group_names_ = combined, groups.names
            eta = np.stack(
                [groups.feature_importances(e, s) for e, s in zip(eta, squared, strict=True)]
            )
            combined = groups.feature_importances(combined, squared.mean(axis=0))
        self.feature_importances_ = spread(combined, varying)
        self.member_importances_ = np.stack([spread(row, varying) for row in eta])
        self.n_iter_ = max(e.history.losses.shape[0] for e in ensembles)
        self.objective_curve_ = np.mean(
            [_padded(curve, self.n_iter_) for e in ensembles for curve in e.history.losses.T],
            axis=0,
        )
        self.validation_curve_ = None
        if ensembles[0].history.risks:
            curves = [curve for e in ensembles for curve in np.stack(e.history.risks).T]
            looks = max(curve.size for curve in curves)
            rows = [np.append(c, np.full(looks - c.size, np.nan)) for c in curves]
            self.validation_curve_ = np.stack(rows, axis=1)

    def _member_values(self, X: Any, y: Array | None) -> list[AnyArray]:
        """Values of every member at checked, standardised rows: a list of (E, C, n)."""
        return [network_values(e.network, X, y) for e in self._ensembles]

    def _standardized_rows(self, X: Any) -> Array:
        check_is_fitted(self, "feature_importances_")
        return self.standardizer_.transform(validate_rows(self, X, reset=False))


def combine(eta: AnyArray, aggregate: str) -> AnyArray:
    """Boosted importances: the arithmetic or geometric mean over members, of sum one."""
    if aggregate == "geometric":
        logs = np.log(np.maximum(eta, np.finfo(float).tiny)).mean(axis=0)
        eta = np.exp(logs - logs.max())[None]
    mean = eta.mean(axis=0)
    return np.asarray(mean / mean.sum())


def _padded(curve: AnyArray, n: int) -> AnyArray:
    """A curve that stopped early keeps its last value."""
    return np.concatenate([curve, np.full(n - curve.size, curve[-1])])
