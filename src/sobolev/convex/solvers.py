r"""Solvers for convex SIC: the fixed point of Theorem 1, by Algorithm 1 or Algorithm 2.

Both algorithms minimise the following objective, jointly convex in (U, eta),

.. math::

    L_\varepsilon(U, \eta) = -\langle U, M \rangle
      + \tfrac12 \Big\langle U, \Big(\lambda \sum_j \frac{D_j}{\eta_j} + \rho C
        + \tau G\Big) U \Big\rangle + \frac{\lambda}{2} \sum_j \frac{\varepsilon}{\eta_j}

over U and over eta in the simplex. Its unique minimiser is the fixed point

.. math::

    U = \Big(\lambda \sum_j D_j/\eta_j + \rho C + \tau G\Big)^{-1} M, \qquad
    \eta_j \propto \sqrt{\langle U, D_j U \rangle + \varepsilon}.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg as sl

from sobolev._parameters import check_count, check_number, check_option
from sobolev._typing import Array
from sobolev.convex.quadratics import CoupledForms, QuadraticForms, cholesky
from sobolev.criterion import (
    Decomposition,
    Groups,
    mirror_step,
    normalized_importances,
    sobolev_penalty,
)

Forms = QuadraticForms | CoupledForms

# A smaller eta would make the weight 1 / eta so large that the rest of the system is lost to
# rounding.
ETA_FLOOR = 1e-10
# Largest number of rounds of the recursive metric with rounds="auto".
AUTO_ROUNDS = 10


@dataclass(frozen=True, kw_only=True)
class Solver(ABC):
    """Settings that both algorithms share; see :class:`Alternating`."""

    max_iter: int = 100
    tol: float = 1e-3
    epsilon: float | Sequence[float] = 1e-12
    rounds: int | str = "auto"
    screen: int | str | None = "auto"
    precision: str = "double"
    warm_start: bool = False

    def __post_init__(self) -> None:
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        for value in self.epsilons:
            check_number("epsilon", value, positive=True)
        if not self.epsilons or np.any(np.diff(self.epsilons) >= 0):
            raise ValueError(
                f"epsilon={self.epsilon!r} must be a number or a decreasing sequence of numbers."
            )
        if self.rounds != "auto":
            check_count("rounds", self.rounds)
        if self.screen is not None and self.screen != "auto":
            check_count("screen", self.screen)
        check_option("precision", self.precision, ("double", "single"))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The decreasing sequence of epsilon."""
        return tuple(np.atleast_1d(np.asarray(self.epsilon, dtype=float)).tolist())

    @property
    def n_rounds(self) -> int:
        """Largest number of rounds of the recursive metric."""
        return AUTO_ROUNDS if isinstance(self.rounds, str) else int(self.rounds)

    @abstractmethod
    def algorithm(self, forms: Forms, penalties: Penalties, **options: Any) -> Solution:
        """Run the algorithm for one epsilon."""

    def solve(
        self, forms: Forms, penalties: Penalties, *, max_iter: int | None = None, **options: Any
    ) -> Solution:
        """Solve for a decreasing sequence of epsilon, each from the last solution (Theorem 2).

        As epsilon falls the solutions tend to one of the unperturbed problem, in which irrelevant
        features have importance zero.

        Parameters
        ----------
        forms, penalties
            As for :func:`alternating`; ``penalties.epsilon`` is replaced by each value in turn.
        max_iter : int, optional
            Largest number of iterations, if not that of the settings.
        **options
            Passed to the algorithm.

        Returns
        -------
        Solution
            Solution for the last epsilon, with the total number of iterations.
        """
        options |= {"max_iter": max_iter or self.max_iter, "tol": self.tol}
        solutions: list[Solution] = []
        for epsilon in self.epsilons:
            solutions.append(self.algorithm(forms, replace(penalties, epsilon=epsilon), **options))
            options["eta"] = solutions[-1].eta
        return replace(
            solutions[-1],
            n_iter=sum(solution.n_iter for solution in solutions),
            objective_curve=np.concatenate([solution.objective_curve for solution in solutions]),
        )


class Alternating(Solver):
    """Algorithm 1 of the paper: a linear system for the critic, importances in closed form.

    Parameters
    ----------
    max_iter : int, default=100
        Largest number of iterations in the last round.
    tol : float, default=1e-3
        Stop when the importances change by less than this in total variation.
    epsilon : float or sequence of float, default=1e-12
        Perturbation that keeps importances positive. A decreasing sequence is a continuation
        (Theorem 2): each solution is the starting point of the next.
    rounds : int or "auto", default="auto"
        Number of rounds of the recursive metric. Each round rescales the kernel by the importances
        of the round before. 1 is the paper; "auto" stops when the importances settle, after ten
        rounds at most.
    screen : int, None or "auto", default="auto"
        Number of candidate columns to fit first; columns that violate the optimality condition are
        added. "auto" starts with 2,000 columns if there are more than 5,000. None fits all
        columns. Fits to more than 5,000 rows in chunks are never screened.
    precision : {"double", "single"}, default="double"
        "single" computes Fourier features and their products for a chunk of rows in single
        precision and stores the rows of a screened fit in it. Sums and solves are always double.
    warm_start : bool, default=False
        Whether to start from the importances of the last fit.

    Examples
    --------
    >>> from sobolev import ConvexSIC
    >>> from sobolev.convex import Alternating
    >>> sic = ConvexSIC(solver=Alternating(rounds=1, tol=1e-4))
    """

    def algorithm(self, forms: Forms, penalties: Penalties, **options: Any) -> Solution:
        """See :func:`alternating`."""
        return alternating(forms, penalties, **options)


@dataclass(frozen=True, kw_only=True)
class BlockCoordinateDescent(Solver):
    """Algorithm 2 of the paper: a gradient step for the critic, a mirror step for importances.

    Parameters
    ----------
    max_iter, tol, epsilon, rounds, screen, precision, warm_start
        See :class:`Alternating`.
    step : float, default=0.5
        First size of the mirror step that is tried.
    """

    step: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("step", self.step, positive=True)

    def algorithm(self, forms: Forms, penalties: Penalties, **options: Any) -> Solution:
        """See :func:`block_coordinate_descent`."""
        return block_coordinate_descent(forms, penalties, step=self.step, **options)


SOLVERS: dict[str, type[Solver]] = {"alternating": Alternating, "bcd": BlockCoordinateDescent}


def resolve_solver(solver: Any) -> Solver:
    """The solver of a parameter ``solver``: a name or an object."""
    if isinstance(solver, Solver):
        return solver
    check_option("solver", solver, SOLVERS)
    return SOLVERS[solver]()


@dataclass(frozen=True)
class Penalties:
    """The weights of the penalties: gradient (lam), function (rho), norm (tau), and epsilon."""

    lam: float
    rho: float = 1.0
    tau: float = 1e-4
    epsilon: float = 1e-12


@dataclass(frozen=True)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    U : array of shape (m, k)
        Coefficients of the critic, the exact minimiser for ``eta``.
    eta : array
        Importances, one for each feature or group.
    squared_gradients : array of shape (d,)
        E|∂_j f|² of the critic.
    objective_curve : array
        Objective after each iteration.
    n_iter : int
        Number of iterations.
    residual : float
        Half the sum of |eta(U) - eta|: the distance from the fixed point.
    converged : bool
        Whether ``residual`` is at most ``tol``.
    zeta, target_squares : array of shape (n_outputs,) or (0,)
        Importances of the columns of y and E|∂f/∂y_l|², if sparsity in y was asked for.
    """

    U: Array
    eta: Array
    squared_gradients: Array
    objective_curve: Array
    n_iter: int
    residual: float
    converged: bool
    zeta: Array = field(default_factory=lambda: np.zeros(0))
    target_squares: Array = field(default_factory=lambda: np.zeros(0))


def alternating(
    forms: Forms,
    penalties: Penalties,
    groups: Groups | None = None,
    eta: Array | None = None,
    max_iter: int = 100,
    tol: float = 1e-3,
    callback: Callable[[int, float], None] | None = None,
    output_weights: Array | None = None,
) -> Solution:
    r"""Alternating optimisation (Alg. 1): a linear system, then importances in closed form.

    With ``output_weights`` the critic is sparse in y too (Remark 1 of the paper). With
    :math:`\partial f/\partial y_l = \phi(x)^\top U t_l` the second penalty is
    :math:`\frac{\lambda}{2} \sum_l t_l^\top U^\top C U t_l / \zeta_l`.

    Parameters
    ----------
    forms : QuadraticForms or CoupledForms
        Quadratic forms of the sample; of the product measure if ``output_weights`` is given.
    penalties : Penalties
        lam, rho, tau, epsilon.
    groups : Groups, optional
        Groups of features; by default every feature is a group of its own.
    eta : array, optional
        Importances to start from; uniform by default.
    max_iter : int, default=100
        Largest number of iterations.
    tol : float, default=1e-3
        Stop when the importances change by less than this in total variation.
    callback : callable, optional
        Called with the iteration and the objective.
    output_weights : array of shape (n_outputs, k), optional
        The rows t_l.

    Returns
    -------
    Solution
    """
    lam, rho, tau, epsilon = penalties.lam, penalties.rho, penalties.tau, penalties.epsilon
    eta = _start(forms, groups, eta)
    n_outputs = 0 if output_weights is None else output_weights.shape[0]
    zeta = np.full(n_outputs, 1.0 / max(1, n_outputs))
    new_zeta = y_squares = np.zeros(n_outputs)
    curve: list[float] = []
    iteration, residual = 0, np.inf
    while True:
        weights = gradient_weights(eta, groups)
        if output_weights is None:
            U = forms.solve(weights, lam, rho, tau)  # Alg. 1, u-step
        else:
            U = _joint_solve(forms, weights, penalties, output_weights, zeta)  # Remark 1, u-step
            UCU = U.T @ forms.covariance_times(U)
            y_squares = np.einsum("la,ab,lb->l", output_weights, UCU, output_weights)
            y_squares = np.maximum(y_squares, 0.0)
            new_zeta = normalized_importances(y_squares, epsilon)  # Remark 1, step for y
        squares = np.maximum(forms.squared_gradients(U), 0.0)
        curve.append(_objective(forms, U, penalties, np.concatenate([eta, zeta])))
        if callback is not None:
            callback(iteration, curve[-1])
        # Alg. 1, eta-step (Lemma 1)
        new = normalized_importances(_grouped(squares, groups), epsilon)
        residual = 0.5 * float(np.abs(new - eta).sum() + np.abs(new_zeta - zeta).sum())
        if residual <= tol or iteration >= max_iter:
            break
        eta, zeta = np.maximum(new, ETA_FLOOR), np.maximum(new_zeta, ETA_FLOOR)
        iteration += 1
    converged = residual <= tol
    return Solution(
        U, eta, squares, np.array(curve), iteration, residual, converged, zeta, y_squares
    )


def _joint_solve(
    forms: Forms, weights: Array, penalties: Penalties, output_weights: Array, zeta: Array
) -> Array:
    r"""The u-step of Remark 1: :math:`A U + \lambda C U Q = M`, :math:`Q = \sum t t^\top/\zeta`.

    In the eigenbasis of the small matrix Q it separates into one system for each eigenvalue q, with
    :math:`\rho + \lambda q` in the place of :math:`\rho`; no Kronecker system has to be solved.
    """
    lam, rho, tau = penalties.lam, penalties.rho, penalties.tau
    q, V = np.linalg.eigh((output_weights.T / zeta) @ output_weights)
    columns = [
        forms.solve(weights, lam, rho + lam * q_l, tau, M=forms.M @ v[:, None])
        for q_l, v in zip(q, V.T, strict=True)
    ]
    return np.hstack(columns) @ V.T


def block_coordinate_descent(
    forms: Forms,
    penalties: Penalties,
    groups: Groups | None = None,
    eta: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-3,
    callback: Callable[[int, float], None] | None = None,
    step: float = 0.5,
) -> Solution:
    """Block coordinate descent (Alg. 2): a gradient step on U, a mirror step on eta.

    The gradient is preconditioned by the system at an earlier eta, which is factored again when an
    importance has changed by a factor of two. The step along the gradient is exact, and the mirror
    step is halved until the objective falls. At the end U is solved exactly for the last eta.

    Parameters
    ----------
    forms, penalties, groups, eta, max_iter, tol, callback
        As for :func:`alternating`.
    step : float, default=0.5
        First size of the mirror step that is tried.

    Returns
    -------
    Solution
    """
    lam, rho, tau, epsilon = penalties.lam, penalties.rho, penalties.tau, penalties.epsilon
    eta = _start(forms, groups, eta)
    A = forms.system(gradient_weights(eta, groups), lam, rho, tau)
    anchor, factor = eta, cholesky(A)
    U = np.zeros_like(forms.M)
    curve: list[float] = []
    residual = np.inf
    for iteration in range(max_iter + 1):
        gradient = A @ U - forms.M
        direction = sl.cho_solve((factor, True), gradient, check_finite=False)
        curvature = float(np.sum(direction * (A @ direction)))
        slope = float(np.sum(direction * gradient))
        if curvature > 0:
            U = U - slope / curvature * direction  # Alg. 2, u-step
        squares = np.maximum(forms.squared_gradients(U), 0.0)
        grouped = _grouped(squares, groups)
        rest = -float(np.sum(U * forms.M)) + 0.5 * (
            rho * float(np.sum(U * forms.covariance_times(U)))
            + tau * float(np.sum(U * forms.norm_times(U)))
        )
        objective = rest + 0.5 * lam * sobolev_penalty(grouped, eta, epsilon)
        curve.append(objective)
        if callback is not None:
            callback(iteration, objective)
        eta_residual = 0.5 * float(np.abs(normalized_importances(grouped, epsilon) - eta).sum())
        u_residual = float(np.sqrt(abs(slope)) / np.sqrt(max(float(np.sum(U * forms.M)), 1e-300)))
        residual = max(eta_residual, u_residual)
        if residual <= tol or iteration == max_iter:
            break
        size = step
        while eta.size and size > 1e-6:  # Alg. 2, eta-step
            candidate = np.maximum(mirror_step(eta, grouped, size, epsilon), ETA_FLOOR)
            if rest + 0.5 * lam * sobolev_penalty(grouped, candidate, epsilon) <= objective:
                eta = candidate
                break
            size /= 2
        A = forms.system(gradient_weights(eta, groups), lam, rho, tau)
        if np.abs(np.log(eta / anchor)).max(initial=0.0) > np.log(2.0):
            anchor, factor = eta, cholesky(A)
    U = forms.solve(gradient_weights(eta, groups), lam, rho, tau)
    squares = np.maximum(forms.squared_gradients(U), 0.0)
    curve[-1] = _objective(forms, U, penalties, eta)
    return Solution(U, eta, squares, np.array(curve), iteration, residual, residual <= tol)


def decomposition(
    forms: Forms, solution: Solution, penalties: Penalties, groups: Groups | None = None
) -> Decomposition:
    """The terms of the corollary at a solution; they add up exactly because U is exact for eta."""
    U = solution.U
    weights = gradient_weights(solution.eta, groups)
    return Decomposition(
        mean_difference=float(np.sum(U * forms.M)),
        per_feature=0.5 * penalties.lam * weights * solution.squared_gradients,
        function=0.5 * penalties.rho * float(np.sum(U * forms.covariance_times(U))),
        norm=0.5 * penalties.tau * float(np.sum(U * forms.norm_times(U))),
        per_target=0.5 * penalties.lam * solution.target_squares / solution.zeta,
    )


def _objective(forms: Forms, U: Array, penalties: Penalties, eta: Array) -> float:
    """L_epsilon where U is exact for eta: there <U, A U> = <U, M>."""
    perturbation = 0.5 * penalties.lam * penalties.epsilon * float(np.sum(1 / eta))
    return perturbation - 0.5 * float(np.sum(U * forms.M))


def _start(forms: Forms, groups: Groups | None, eta: Array | None) -> Array:
    size = forms.n_features if groups is None else groups.n_groups
    if eta is None:
        return np.full(size, 1.0 / max(size, 1))
    eta = np.maximum(eta, ETA_FLOOR)
    return eta / eta.sum()


def gradient_weights(eta: Array, groups: Groups | None) -> Array:
    """Weight of every D_j in the penalty: 1 / eta of the feature or of its groups, or zero."""
    return 1.0 / eta if groups is None else groups.feature_weights(eta)


def _grouped(squares: Array, groups: Groups | None) -> Array:
    return squares if groups is None else groups.squared_gradients(squares)
