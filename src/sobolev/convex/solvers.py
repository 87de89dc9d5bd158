r"""Solvers for convex SIC: the fixed point of Theorem 1.

Both minimise, jointly convex in (U, eta),

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

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sl

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

# Below this the weight 1 / eta would drown the rest of the system in rounding.
ETA_FLOOR = 1e-10


@dataclass(frozen=True)
class Penalties:
    """The weights of the penalties: gradient (lam), function (rho), norm (tau), and epsilon."""

    lam: float
    rho: float = 1.0
    tau: float = 1e-4
    epsilon: float = 1e-12


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped.

    Attributes
    ----------
    U : array of shape (m, k)
        The coefficients of the critic, the exact minimiser for ``eta``.
    eta : array
        The importances, one for each feature or group.
    squared_gradients : array of shape (d,)
        E|∂_j f|² of the critic.
    objective_curve : array
        The objective after each iteration.
    n_iter : int
        The number of iterations.
    residual : float
        Half the sum of |eta(U) - eta|: the distance from the fixed point.
    converged : bool
        Whether ``residual`` is at most ``tol``.
    """

    U: Array
    eta: Array
    squared_gradients: Array
    objective_curve: Array
    n_iter: int
    residual: float
    converged: bool


def alternating(
    forms: Forms,
    penalties: Penalties,
    groups: Groups | None = None,
    eta: Array | None = None,
    max_iter: int = 100,
    tol: float = 1e-3,
    callback: Callable[[int, float], None] | None = None,
) -> Solution:
    """Alternating optimisation (Algorithm 1): a linear system, then importances in closed form.

    Parameters
    ----------
    forms : QuadraticForms or CoupledForms
        The sample, seen through the feature map.
    penalties : Penalties
        lam, rho, tau, epsilon.
    groups : Groups, optional
        Groups of features; each feature is its own if not given.
    eta : array, optional
        Where to start; uniform if not given.
    max_iter : int, default=100
        The most iterations.
    tol : float, default=1e-3
        Stop when the importances move by less than this in total variation.
    callback : callable, optional
        Called with the iteration and the objective.

    Returns
    -------
    Solution
    """
    lam, rho, tau, epsilon = penalties.lam, penalties.rho, penalties.tau, penalties.epsilon
    eta = _start(forms, groups, eta)
    curve: list[float] = []
    iteration, residual = 0, np.inf
    while True:
        U = forms.solve(gradient_weights(eta, groups), lam, rho, tau)  # Alg. 1, u-step
        squares = np.maximum(forms.squared_gradients(U), 0.0)
        curve.append(_objective(forms, U, penalties, eta))
        if callback is not None:
            callback(iteration, curve[-1])
        new = normalized_importances(_grouped(squares, groups), epsilon)  # Alg. 1, eta-step
        residual = 0.5 * float(np.abs(new - eta).sum())
        if residual <= tol or iteration >= max_iter:
            break
        eta = np.maximum(new, ETA_FLOOR)
        iteration += 1
    return Solution(U, eta, squares, np.array(curve), iteration, residual, residual <= tol)


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
    """Block coordinate descent (Algorithm 2): a gradient step on U, a mirror step on eta.

    The gradient is preconditioned by the system at an earlier eta (factored anew when some
    importance has moved by a factor of two), the step along it is exact, and the mirror step is
    halved until the objective falls. At the end U is solved exactly for the last eta.

    Parameters
    ----------
    forms, penalties, groups, eta, max_iter, tol, callback
        As for :func:`alternating`.
    step : float, default=0.5
        The first mirror step tried.

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
        while size > 1e-6:  # Alg. 2, eta-step
            candidate = np.maximum(mirror_step(eta, grouped, size, epsilon), ETA_FLOOR)
            if rest + 0.5 * lam * sobolev_penalty(grouped, candidate, epsilon) <= objective:
                eta = candidate
                break
            size /= 2
        A = forms.system(gradient_weights(eta, groups), lam, rho, tau)
        if np.abs(np.log(eta / anchor)).max() > np.log(2.0):
            anchor, factor = eta, cholesky(A)
    U = forms.solve(gradient_weights(eta, groups), lam, rho, tau)
    squares = np.maximum(forms.squared_gradients(U), 0.0)
    curve[-1] = _objective(forms, U, penalties, eta)
    return Solution(U, eta, squares, np.array(curve), iteration, residual, residual <= tol)


SOLVERS: dict[str, Callable[..., Solution]] = {
    "alternating": alternating,
    "bcd": block_coordinate_descent,
}


def continuation(
    forms: Forms,
    penalties: Penalties,
    epsilons: tuple[float, ...],
    solver: str = "alternating",
    **options: object,
) -> Solution:
    """Solve for a decreasing sequence of epsilon, each from the last solution (Theorem 2).

    As epsilon falls the solutions tend to one of the unperturbed problem, in which irrelevant
    features have importance zero.

    Parameters
    ----------
    forms, penalties
        As for :func:`alternating`; ``penalties.epsilon`` is replaced by each value in turn.
    epsilons : tuple of float
        The sequence, decreasing.
    solver : {"alternating", "bcd"}, default="alternating"
        The solver.
    **options
        Passed to the solver.

    Returns
    -------
    Solution
        The last one, with the total number of iterations.
    """
    eta = options.pop("eta", None)
    curves: list[Array] = []
    n_iter = 0
    for epsilon in epsilons:
        solution = SOLVERS[solver](forms, replace(penalties, epsilon=epsilon), eta=eta, **options)
        eta = solution.eta
        curves.append(solution.objective_curve)
        n_iter += solution.n_iter
    return replace(solution, n_iter=n_iter, objective_curve=np.concatenate(curves))


@dataclass(frozen=True)
class JointSolution(Solution):
    """A solution with importances of the responses too.

    Attributes
    ----------
    zeta : array of shape (n_outputs,)
        The importances of the columns of y.
    target_squares : array of shape (n_outputs,)
        E|∂f/∂y_l|² of the critic.
    """

    zeta: Array
    target_squares: Array


def alternating_joint(
    forms: QuadraticForms,
    penalties: Penalties,
    output_weights: Array,
    groups: Groups | None = None,
    eta: Array | None = None,
    max_iter: int = 100,
    tol: float = 1e-3,
    callback: Callable[[int, float], None] | None = None,
) -> JointSolution:
    r"""Alternating optimisation with sparsity in x and in y (Remark 1 of the paper).

    With :math:`\partial f/\partial y_l = \phi(x)^\top U t_l` the second penalty is
    :math:`\frac{\lambda}{2} \sum_l t_l^\top U^\top C U t_l / \zeta_l`, and the u-step becomes
    :math:`A U + \lambda C U Q = M` with :math:`Q = \sum_l t_l t_l^\top / \zeta_l`. In the
    eigenbasis of the small matrix Q it falls apart into one system for each eigenvalue q, with
    :math:`\rho + \lambda q` in the place of :math:`\rho`: no Kronecker system has to be solved.

    Parameters
    ----------
    forms : QuadraticForms
        The sample under the product measure.
    output_weights : array of shape (n_outputs, k)
        The rows t_l.
    penalties, groups, eta, max_iter, tol, callback
        As for :func:`alternating`.

    Returns
    -------
    JointSolution
    """
    lam, rho, tau, epsilon = penalties.lam, penalties.rho, penalties.tau, penalties.epsilon
    eta = _start(forms, groups, eta)
    zeta = np.full(output_weights.shape[0], 1.0 / output_weights.shape[0])
    curve: list[float] = []
    iteration, residual = 0, np.inf
    while True:
        q, V = np.linalg.eigh((output_weights.T / zeta) @ output_weights)
        weights = gradient_weights(eta, groups)
        columns = [
            forms.solve(weights, lam, rho + lam * q_l, tau, M=forms.M @ v[:, None])
            for q_l, v in zip(q, V.T, strict=True)
        ]
        U = np.hstack(columns) @ V.T
        squares = np.maximum(forms.squared_gradients(U), 0.0)
        UCU = U.T @ forms.covariance_times(U)
        y_squares = np.maximum(np.einsum("la,ab,lb->l", output_weights, UCU, output_weights), 0.0)
        curve.append(_objective(forms, U, penalties, np.concatenate([eta, zeta])))
        if callback is not None:
            callback(iteration, curve[-1])
        new_eta = normalized_importances(_grouped(squares, groups), epsilon)
        new_zeta = normalized_importances(y_squares, epsilon)
        residual = 0.5 * float(np.abs(new_eta - eta).sum() + np.abs(new_zeta - zeta).sum())
        if residual <= tol or iteration >= max_iter:
            break
        eta = np.maximum(new_eta, ETA_FLOOR)
        zeta = np.maximum(new_zeta, ETA_FLOOR)
        iteration += 1
    return JointSolution(
        U, eta, squares, np.array(curve), iteration, residual, residual <= tol, zeta, y_squares
    )


def decomposition(
    forms: Forms, solution: Solution, penalties: Penalties, groups: Groups | None = None
) -> Decomposition:
    """The terms of the corollary at a solution; they add up exactly, U being exact for eta."""
    U = solution.U
    weights = gradient_weights(solution.eta, groups)
    per_target = np.zeros(0)
    if isinstance(solution, JointSolution):
        per_target = 0.5 * penalties.lam * solution.target_squares / solution.zeta
    return Decomposition(
        mean_difference=float(np.sum(U * forms.M)),
        per_feature=0.5 * penalties.lam * weights * solution.squared_gradients,
        function=0.5 * penalties.rho * float(np.sum(U * forms.covariance_times(U))),
        norm=0.5 * penalties.tau * float(np.sum(U * forms.norm_times(U))),
        per_target=per_target,
    )


def _objective(forms: Forms, U: Array, penalties: Penalties, eta: Array) -> float:
    """L_epsilon where U is exact for eta: there <U, A U> = <U, M>."""
    perturbation = 0.5 * penalties.lam * penalties.epsilon * float(np.sum(1 / eta))
    return perturbation - 0.5 * float(np.sum(U * forms.M))


def _start(forms: Forms, groups: Groups | None, eta: Array | None) -> Array:
    size = forms.n_features if groups is None else groups.n_groups
    if eta is None:
        return np.full(size, 1.0 / size)
    eta = np.maximum(eta, ETA_FLOOR)
    return eta / eta.sum()


def gradient_weights(eta: Array, groups: Groups | None) -> Array:
    """The weight of every D_j in the penalty: 1 / eta, of its group if there are groups."""
    return 1.0 / eta if groups is None else groups.feature_weights(eta)


def _grouped(squares: Array, groups: Groups | None) -> Array:
    return squares if groups is None else groups.squared_gradients(squares)
