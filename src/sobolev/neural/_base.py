"""What NeuralSIC and the Sobolev-penalised predictors share: training and members."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sobolev._parameters import check_count, check_number, check_option
from sobolev._progress import Progress
from sobolev._random import RandomState, check_generator, spawn
from sobolev._sample import (
    Folds,
    Sample,
    merge_equal_rows,
    report_constant,
    spread,
    stratified_folds,
    used_rows,
    varying_groups,
)
from sobolev._standardize import Standardizer
from sobolev._typing import AnyArray, Array
from sobolev.criterion import Groups, choose_lam
from sobolev.critic import CriticMixin
from sobolev.neural.fitting import Design, Member, Recipe, fit_members
from sobolev.neural.optimizer import Boosting, Optimizer
from sobolev.selection import SICSelectorMixin
from sobolev.validation import validate_rows, validate_training

if TYPE_CHECKING:
    from typing import Self

# Up to this many rows equal ones are merged and the order of rows does not matter.
MERGE_ROWS = 5000
# The path of lam for ``lam="auto"``; the reference is kept unless another is clearly better.
LAMS = (0.1, 0.03, 0.01, 0.003, 0.001)
# Number of checks of the held-out risk.
LOOKS = 40
# Attributes that only some fits set.
OPTIONAL = ("classes_", "group_importances_", "group_names_")


def resolve_device(device: Any, *, needs_torch: bool) -> Any:
    """The device to train on; None is the CPU, where numpy does the work."""
    if str(device) == "cpu" or (device == "auto" and not needs_torch):
        return None
    from sobolev.neural.torch_backend import find_device

    return find_device(device)


class NeuralEstimator(CriticMixin, SICSelectorMixin, BaseEstimator):
    """Training of an ensemble of networks with a Sobolev penalty.

    A subclass encodes the response in ``_encode`` and names its networks in ``_designs``.
    """

    lam: Any
    optimizer: Optimizer | None
    boosting: Any
    feature_groups: Any
    adjust: Any
    cv: Any
    random_state: RandomState
    n_jobs: int | None
    verbose: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the networks and the importances.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Numeric columns without missing values.
        y : array-like of shape (n,) or (n, q)
            The response: numbers, or labels.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights: rows are drawn in proportion to them.

        Returns
        -------
        self
        """
        return self.fit_validated(*validate_training(self, X, y, sample_weight))

    def fit_validated(self, X: Array, y: Any, weights: Array | None = None) -> Self:
        """Fit to rows that were checked at the door; ``weights`` are probabilities."""
        self._fit(X, y, weights)
        return self

    # -- for subclasses --------------------------------------------------------------------------

    def _encode(self, y: Any, p: Array) -> Array:
        """Fit ``encoder_``; the columns that the networks are trained on, (n, k)."""
        raise NotImplementedError

    def _designs(self, n_targets: int) -> list[Design]:
        """The architectures, and what they are trained for."""
        raise NotImplementedError

    def _fit(self, X: Array, y: Any, weights: Array | None) -> tuple[Sample, Recipe]:
        """Encode, standardise, train and store; the rows of the fit, and what members shared."""
        optimizer = self._checked_optimizer()
        self.n_features_in_ = X.shape[1]
        for name in OPTIONAL:
            self.__dict__.pop(name, None)
        p = np.full(X.shape[0], 1 / X.shape[0]) if weights is None else weights
        X, y, p, folds = used_rows(self, X, y, p)
        psi = self._encode(y, p)
        if (isinstance(folds, int) or self.lam != "auto") and X.shape[0] <= MERGE_ROWS:
            X, psi, p = merge_equal_rows(X, psi, p, ordered=True)
        self.standardizer_ = Standardizer.fit(X, p)
        varying, names = self.standardizer_.varying, getattr(self, "feature_names_in_", None)
        report_constant(varying, names, stacklevel=5)  # the line that called fit
        groups = varying_groups(self.feature_groups, varying, names, self.adjust)
        designs = self._designs(psi.shape[1])
        rng = check_generator(self.random_state)
        needs_torch = optimizer.gradient == "autograd" or not all(d.batched for d in designs)
        device = resolve_device(optimizer.device, needs_torch=needs_torch)
        recipe = Recipe(optimizer, groups, device, seed=int(rng.integers(2**32)))
        sample = Sample(self.standardizer_.transform(X), psi, p)
        self._train(sample, designs, recipe, folds, rng)
        self._store_importances(groups)
        self._store_curves()
        return sample, recipe

    @property
    def _boosting(self) -> Boosting:
        if isinstance(self.boosting, Boosting):
            return self.boosting
        if not isinstance(self.boosting, Integral):
            raise TypeError(
                f"boosting must be a number of members or a Boosting(); got {self.boosting!r}."
            )
        check_count("boosting", self.boosting)
        return Boosting(int(self.boosting))

    def _checked_optimizer(self) -> Optimizer:
        """The optimizer, after a check of what else is given as a parameter."""
        if isinstance(self.lam, str):
            check_option("lam", self.lam, ["auto"])
        else:
            check_number("lam", self.lam)
        optimizer = Optimizer() if self.optimizer is None else self.optimizer
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"optimizer must be None or an Optimizer(); got {optimizer!r}.")
        return optimizer

    # -- training --------------------------------------------------------------------------------

    def _train(
        self, sample: Sample, designs: list[Design], recipe: Recipe, folds: Folds, rng: Generator
    ) -> None:
        """Choose lam and train the members of every design and batch size."""
        optimizer = recipe.optimizer
        start = getattr(self, "_ensembles", None) if optimizer.warm_start else None
        with Progress(self.verbose) as progress:
            report = self._reporter(progress, optimizer)
            if self.lam == "auto":
                progress.stage("choosing lam", optimizer.total_updates)
                chosen = self._choose_lam(sample, designs[0], recipe, folds, rng, report)
            else:
                chosen = float(self.lam), None
            self.lam_, self.lam_risks_ = chosen
            if optimizer.early_stopping is not None:
                every = max(1, optimizer.max_iter // LOOKS)
                patience = optimizer.early_stopping.patience
                recipe = replace(recipe, every=every, patience=patience)
            members = self._members(sample, designs, optimizer, rng)
            progress.stage(f"training at lam={self.lam_:g}", optimizer.total_updates)
            self._ensembles = fit_members(sample, members, recipe, start, self.n_jobs, report)
        self.lam_path_ = None if self.lam_risks_ is None else np.array(LAMS)

    def _choose_lam(
        self,
        sample: Sample,
        design: Design,
        recipe: Recipe,
        folds: Folds,
        rng: Generator,
        report: Any,
    ) -> tuple[float, Array | None]:
        """The lam of the best held-out risk, and the risks (folds, lams).

        All values and folds are members of one ensemble.
        """
        folds = stratified_folds(sample, folds) if isinstance(folds, int) else folds
        reference = float(type(self)().lam)
        if not folds:
            return reference, None
        rows, size = np.arange(sample.p.size), int(recipe.optimizer.batch_sizes[0])
        seed = int(rng.integers(2**63))  # every lam sees the same batches
        members = [
            Member(design, size, lam, child, np.setdiff1d(rows, fold), fold)
            for lam in LAMS
            for fold, child in zip(folds, spawn(seed, len(folds)), strict=True)
        ]
        looking = replace(recipe, every=recipe.optimizer.max_iter, patience=1)
        found = fit_members(sample, members, looking, None, self.n_jobs, report)
        risks = np.concatenate([ensemble.history.risks[-1] for ensemble in found])
        table = risks.reshape(len(LAMS), len(folds)).T
        return choose_lam(table, LAMS, reference), table

    def _members(
        self, sample: Sample, designs: list[Design], optimizer: Optimizer, rng: Generator
    ) -> list[Member]:
        """Members of Boosted SIC: each design with each batch size, ``n_members`` times.

        For early stopping the folds of held-out rows are dealt to the members in turn.
        """
        rows, stopping = np.arange(sample.p.size), optimizer.early_stopping
        folds: list[Any] = [None]
        if stopping is not None:
            folds = stratified_folds(sample, round(1 / stopping.validation_fraction)) or [None]
        sizes = [b for b in optimizer.batch_sizes for _ in range(self._boosting.n_members)]
        pairs = [(design, int(size)) for design in designs for size in sizes]
        members = []
        for i, child in enumerate(rng.spawn(len(pairs))):
            fold = folds[i % len(folds)]
            own = rows if fold is None else np.setdiff1d(rows, fold)
            members.append(Member(*pairs[i], self.lam_, child, own, fold))
        return members

    def _reporter(self, progress: Progress, optimizer: Optimizer) -> Any:
        def report(number: int, done: int, losses: AnyArray) -> None:
            progress.step(
                f"round {number}, update {done}, SIC {-losses.mean():.5f}",
                (number - 1) * optimizer.round_updates + done,
            )

        return None if progress.shown is None else report

    def _store_importances(self, groups: Groups | None) -> None:
        varying = self.standardizer_.varying
        eta = np.concatenate([e.eta for e in self._ensembles])
        combined = combine(eta, self._boosting.aggregate)
        if groups is not None:
            if self.feature_groups is not None:
                self.group_importances_, self.group_names_ = combined, groups.names
            squared = np.concatenate([e.moments.squared for e in self._ensembles])
            eta = np.stack(
                [groups.feature_importances(e, s) for e, s in zip(eta, squared, strict=True)]
            )
            combined = groups.feature_importances(combined, squared.mean(axis=0))
        self.feature_importances_ = spread(combined, varying)
        self.member_importances_ = np.stack([spread(row, varying) for row in eta])

    def _store_curves(self) -> None:
        """The loss of each update and the held-out risks; members may have stopped early."""
        histories = [e.history for e in self._ensembles]
        losses = [curve for history in histories for curve in history.losses.T]
        n = self.n_iter_ = max(curve.size for curve in losses)
        padded = [np.pad(curve, (0, n - curve.size), mode="edge") for curve in losses]
        self.objective_curve_ = np.mean(padded, axis=0)
        self.validation_curve_ = None
        if histories[0].risks:
            risks = [curve for history in histories for curve in zip(*history.risks, strict=True)]
            self.validation_curve_ = np.array([*zip_longest(*risks, fillvalue=np.nan)], dtype=float)

    def _standardized_rows(self, X: Any) -> Array:
        check_is_fitted(self, "feature_importances_")
        return self.standardizer_.transform(validate_rows(self, X, reset=False))


def combine(eta: AnyArray, aggregate: str) -> AnyArray:
    """Boosted SIC: the arithmetic or geometric mean of the members' eta, of sum one."""
    if aggregate == "geometric":
        logs = np.log(np.maximum(eta, np.finfo(float).tiny)).mean(axis=0)
        eta = np.exp(logs - logs.max())[None]
    mean = eta.mean(axis=0)
    return np.asarray(mean / mean.sum())
