r"""The quadratic forms of convex SIC on a sample: M, C, G and :math:`\sum_j w_j D_j`.

A critic :math:`f(x, y) = \phi(x)^\top U \psi(y)` has, under the product of the marginals,

- mean difference :math:`\langle U, M\rangle` with :math:`M = E\,\phi\psi^\top`,
- :math:`E f^2 = \operatorname{tr} U^\top C U` with :math:`C = E\,\phi\phi^\top` (phi centred),
- :math:`E |\partial_j f|^2 = \operatorname{tr} U^\top D_j U` with
  :math:`D_j = E\,\partial_j\phi\,\partial_j\phi^\top`,
- squared norm :math:`\operatorname{tr} U^\top G U` in its function space.

A feature map has a nonlinear *part* and, beside it, a linear block x. The d matrices
D_j are never formed: a part gives their weighted sum (:meth:`Part.penalty`) and the values of their
quadratic forms (:meth:`Part.gradient_products`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg as sl

from sobolev._typing import Array, Index


class Part(Protocol):
    """The nonlinear part of a feature map on a sample, m functions of d features."""

    M: Array
    C: Array
    G: Array
    mean: Array
    mean_derivative: Array
    cross: Array

    def penalty(self, weights: Array) -> Array:
        """The sum of w_j D_j."""

    def gradient_products(self, U: Array, V: Array) -> Array:
        """tr U' D_j V for every feature j."""


class LandmarkPart:
    """Radial kernel functions centred at landmarks, phi_k(x) = kappa(q(x, c_k) / 2).

    With q(x, c) = sum_j g_j (x_j - c_j)², the derivatives are
    ∂_j phi_k(x) = -g_j (x_j - c_kj) H_k(x), H = -kappa'. For a = g² w, s_i = sum_j a_j x_ij²,
    T = X diag(a) C', R = C diag(a) C':

        sum_j w_j D_j = H' diag(p s) H - (H∘T)' diag(p) H - H' diag(p) (H∘T) + (H' diag(p) H)∘R

    where p are the row weights: a few matrix products and no loop over features.

    Parameters
    ----------
    X : array of shape (n, d)
        The rows.
    centers : array of shape (m, d)
        The landmarks.
    K, H : array of shape (n, m)
        The kernel and minus its derivative in q/2.
    G : array of shape (m, m)
        The kernel among the landmarks.
    g : array of shape (d,)
        The metric divided by the squared bandwidth.
    psi : array of shape (n, k)
        The encoded response.
    p, omega : array of shape (n,)
        Probabilities of the rows, and their weights in the second moments (equal to p for the
        product measure; they may be negative in a block of a coupled system).
    """

    def __init__(
        self,
        X: Array,
        centers: Array,
        K: Array,
        H: Array,
        G: Array,
        g: Array,
        psi: Array,
        p: Array,
        omega: Array,
    ) -> None:
        self.X, self.centers, self.H, self.G, self.g = X, centers, H, G, g
        self.omega, self._squares = omega, X**2
        self.mean = p @ K
        centred = K - self.mean
        self.M = centred.T @ (p[:, None] * psi)
        self.C = centred.T @ (omega[:, None] * centred)
        self.cross = centred.T @ (omega[:, None] * X)
        self._weighted_H = H * omega[:, None]
        self._HH = H.T @ self._weighted_H
        # E ∂_j phi_k = -g_j (E[x_j H_k] - c_kj E[H_k])
        self.mean_derivative = -g * (
            self._weighted_H.T @ X - centers * self._weighted_H.sum(axis=0)[:, None]
        )

    def penalty(self, weights: Array) -> Array:
        """The sum of w_j D_j."""
        root = self.g * np.sqrt(weights)
        centers = self.centers * root
        R = self._HH * (centers @ centers.T)  # numpy computes half of a symmetric product
        centers *= root
        T = self.X @ centers.T
        np.subtract(0.5 * (self._squares @ root**2)[:, None], T, out=T)
        T *= self._weighted_H
        Q = self.H.T @ T
        Q += Q.T.copy()
        Q += R
        return Q

    def gradients(self, u: Array) -> Array:
        """The partial derivatives of phi(x)' u at every row, (n, d)."""
        out = self.H @ (u[:, None] * self.centers)
        out -= self.X * (self.H @ u)[:, None]
        out *= self.g
        return out

    def gradient_products(self, U: Array, V: Array) -> Array:
        """tr U' D_j V for every feature j."""
        total = np.zeros(self.g.size)
        for u, v in zip(U.T, V.T, strict=True):
            first = self.gradients(u)
            second = first if u is v or np.array_equal(u, v) else self.gradients(v)
            total += self.omega @ (first * second)
        return total


class FourierPart:
    """Pairs cos(w·x), sin(w·x), from their moments alone.

    With delta = (-sin, cos), ∂_j phi_k = w_kj delta_k, so that
    sum_j w_j D_j = (F diag(weights) F')∘S, S = E delta delta', F the stacked frequencies. S is a
    rearrangement of E phi phi': one Gram matrix serves both.

    Parameters
    ----------
    frequencies : array of shape (m, d)
        The frequencies, stacked twice.
    mean, mean_delta : array of shape (m,)
        E phi and E delta.
    C, S : array of shape (m, m)
        Covariance of phi, and E delta delta'.
    M : array of shape (m, k)
        Covariance of phi and psi.
    cross : array of shape (m, d)
        Covariance of phi and x (empty without a linear block).
    """

    def __init__(
        self,
        frequencies: Array,
        mean: Array,
        mean_delta: Array,
        C: Array,
        S: Array,
        M: Array,
        cross: Array,
    ) -> None:
        self.frequencies, self.mean, self.M, self.cross = frequencies, mean, M, cross
        self.C, self.S = C, S
        self.G = np.eye(mean.size)
        self.mean_derivative = frequencies * mean_delta[:, None]

    def penalty(self, weights: Array) -> Array:
        """The sum of w_j D_j."""
        return ((self.frequencies * weights) @ self.frequencies.T) * self.S

    def gradient_products(self, U: Array, V: Array) -> Array:
        """tr U' D_j V for every feature j."""
        total = np.zeros(self.frequencies.shape[1])
        for u, v in zip(U.T, V.T, strict=True):
            left = self.frequencies * u[:, None]
            total += np.einsum("kj,kj->j", left, self.S @ (self.frequencies * v[:, None]))
        return total


class DensePart:
    """Any map, from its values and derivatives; D_j is kept on the functions that use x_j.

    Parameters
    ----------
    values : array of shape (n, m)
        phi at the rows.
    derivatives : iterable of (columns, array of shape (n, len(columns)))
        For each feature, the functions that use it and their derivatives.
    X, psi : array of shape (n, d), (n, k)
        The rows and the encoded response.
    p, omega : array of shape (n,)
        As for :class:`LandmarkPart`.
    """

    def __init__(
        self,
        values: Array,
        derivatives: list[tuple[Index, Array]],
        X: Array,
        psi: Array,
        p: Array,
        omega: Array,
    ) -> None:
        self.mean = p @ values
        centred = values - self.mean
        self.M = centred.T @ (p[:, None] * psi)
        self.C = centred.T @ (omega[:, None] * centred)
        self.cross = centred.T @ (omega[:, None] * X)
        self.G = np.eye(values.shape[1])
        self.mean_derivative = np.zeros((values.shape[1], len(derivatives)))
        self.D: list[tuple[Index, Array]] = []
        for j, (columns, derivative) in enumerate(derivatives):
            weighted = omega[:, None] * derivative
            self.mean_derivative[columns, j] = weighted.sum(axis=0)
            self.D.append((columns, derivative.T @ weighted))

    def penalty(self, weights: Array) -> Array:
        """The sum of w_j D_j."""
        total = np.zeros_like(self.C)
        for weight, (columns, D) in zip(weights, self.D, strict=True):
            total[np.ix_(columns, columns)] += weight * D
        return total

    def gradient_products(self, U: Array, V: Array) -> Array:
        """tr U' D_j V for every feature j."""
        return np.array([np.sum(U[c] * (D @ V[c])) for c, D in self.D])


@dataclass
class LinearPart:
    """The linear block: functions x_j with ∂_j x_j = 1 and D_j = mass e_j e_j'.

    Attributes
    ----------
    M : array of shape (d, k)
        Covariance of x and psi.
    mass : float
        Sum of the weights of the second moments: one, but for a block of a coupled system.
    gram : array of shape (d, d) or None
        Covariance of x; None when there are fewer rows than features.
    rows : array of shape (n, d) or None
        The centred rows times the root of their weights, when ``gram`` is None.
    """

    M: Array
    gram: Array | None = None
    rows: Array | None = None
    mass: float = 1.0

    @classmethod
    def from_rows(cls, X: Array, psi: Array, p: Array, omega: Array) -> LinearPart:
        """Build the block from rows, in its cheaper form."""
        M, mass = X.T @ (p[:, None] * psi), float(omega.sum())
        if X.shape[1] > X.shape[0] and omega.min() >= 0:
            return cls(M, rows=X * np.sqrt(omega)[:, None], mass=mass)
        return cls(M, gram=X.T @ (omega[:, None] * X), mass=mass)

    def covariance(self) -> Array:
        """The covariance of x, formed if need be."""
        if self.gram is not None:
            return self.gram
        assert self.rows is not None
        return self.rows.T @ self.rows

    def quadratic(self, v: Array) -> Array:
        """Cov(x) v."""
        if self.gram is not None:
            return self.gram @ v
        assert self.rows is not None
        return self.rows.T @ (self.rows @ v)

    def shifted(self, shift: Array, rho: float) -> ShiftedGram:
        """A = diag(shift) + rho Cov(x), factored."""
        return ShiftedGram(self, shift, rho)


class ShiftedGram:
    """A = diag(b) + rho Z'Z, factored by Cholesky or, if Z has few rows, by Woodbury."""

    def __init__(self, linear: LinearPart, b: Array, rho: float) -> None:
        self.Z = linear.rows if linear.gram is None else None
        if self.Z is None:
            A = rho * linear.covariance()
            A[np.diag_indices_from(A)] += b
            self.factor = cholesky(A)
        else:
            self.root = np.sqrt(b)
            self.scaled = self.Z / self.root
            small = self.scaled @ self.scaled.T  # numpy computes half of a symmetric product
            small[np.diag_indices_from(small)] += 1.0 / rho if rho > 0 else np.inf
            self.factor = cholesky(small)

    def solve(self, rhs: Array) -> Array:
        """A⁻¹ times the right-hand side."""
        if self.Z is None:
            return sl.cho_solve((self.factor, True), rhs, check_finite=False)
        rhs = rhs / self.root[:, None]
        inner = sl.cho_solve((self.factor, True), self.scaled @ rhs, check_finite=False)
        return (rhs - self.scaled.T @ inner) / self.root[:, None]

    def quadratic_inverse(self, B: Array) -> Array:
        """B A⁻¹ B'."""
        if self.Z is None:
            half = sl.solve_triangular(self.factor, B.T, lower=True, check_finite=False)
            return half.T @ half
        B = B / self.root
        half = sl.solve_triangular(self.factor, self.scaled @ B.T, lower=True, check_finite=False)
        return B @ B.T - half.T @ half


class QuadraticForms:
    """The forms of a map made of a nonlinear part, a linear block, or both.

    Coefficients are stacked: the nonlinear part's first, the linear block's after.

    Parameters
    ----------
    part : Part or None
        The nonlinear part.
    linear : LinearPart or None
        The linear block.
    """

    def __init__(self, part: Part | None, linear: LinearPart | None) -> None:
        if part is None and linear is None:
            raise ValueError("a feature map needs a nonlinear part or a linear block")
        self.part, self.linear = part, linear
        blocks = [b.M for b in (part, linear) if b is not None]
        self.M = np.vstack(blocks)
        self.m = 0 if part is None else part.M.shape[0]
        self.n_features = linear.M.shape[0] if linear else part.mean_derivative.shape[1]  # type: ignore[union-attr]

    @property
    def mean(self) -> Array:
        """Mean of the map's values; the linear block's columns are centred already."""
        linear = np.zeros(0 if self.linear is None else self.n_features)
        return linear if self.part is None else np.concatenate([self.part.mean, linear])

    def solve(
        self, weights: Array, lam: float, rho: float, tau: float, M: Array | None = None
    ) -> Array:
        """The critic for given eta (Alg. 1, u-step): A U = M, A = lam Σ w_j D_j + rho C + tau G."""
        M = self.M if M is None else M
        if self.part is None:
            return self._linear_system(weights, lam, rho, tau).solve(M)
        A = lam * self.part.penalty(weights) + rho * self.part.C + tau * self.part.G
        if self.linear is None:
            return sl.cho_solve((cholesky(A), True), M, check_finite=False)
        # The linear block is eliminated first (Schur complement): its matrix is diagonal plus Gram.
        B = lam * self.part.mean_derivative * weights + rho * self.part.cross
        A_vv = self._linear_system(weights, lam, rho, tau)
        A -= A_vv.quadratic_inverse(B)
        rhs = M[: self.m] - B @ A_vv.solve(M[self.m :])
        u = sl.cho_solve((cholesky(A), True), rhs, check_finite=False)
        v = A_vv.solve(M[self.m :] - B.T @ u)
        return np.vstack([u, v])

    def _linear_system(self, weights: Array, lam: float, rho: float, tau: float) -> ShiftedGram:
        """The block of A on the linear block, factored."""
        assert self.linear is not None
        return self.linear.shifted(self._linear_shift(weights, lam, tau), rho)

    def _linear_shift(self, weights: Array, lam: float, tau: float) -> Array:
        """The diagonal of lam Σ w_j D_j + tau G on the linear block."""
        assert self.linear is not None
        return lam * self.linear.mass * weights + tau

    def system(self, weights: Array, lam: float, rho: float, tau: float) -> Array:
        """The matrix A in full."""
        blocks: list[Array] = []
        if self.part is not None:
            blocks.append(lam * self.part.penalty(weights) + rho * self.part.C + tau * self.part.G)
        if self.linear is not None:
            shift = np.diag(self._linear_shift(weights, lam, tau))
            blocks.append(rho * self.linear.covariance() + shift)
        if self.part is None or self.linear is None:
            return blocks[0]
        B = lam * self.part.mean_derivative * weights + rho * self.part.cross
        return np.block([[blocks[0], B], [B.T, blocks[1]]])

    def squared_gradients(self, U: Array, V: Array | None = None) -> Array:
        """tr U' D_j V for every feature j; V is U if not given."""
        V = U if V is None else V
        total = np.zeros(self.n_features)
        if self.part is not None:
            total += self.part.gradient_products(U[: self.m], V[: self.m])
        if self.linear is not None:
            u, v = U[self.m :], V[self.m :]
            total += self.linear.mass * np.sum(u * v, axis=1)
            if self.part is not None:
                slope = self.part.mean_derivative.T
                total += np.sum(u * (slope @ V[: self.m]) + v * (slope @ U[: self.m]), axis=1)
        return total

    def covariance_times(self, U: Array) -> Array:
        """C U."""
        if self.part is None:
            assert self.linear is not None
            return self.linear.quadratic(U)
        top = self.part.C @ U[: self.m]
        if self.linear is None:
            return top
        v = U[self.m :]
        bottom = self.part.cross.T @ U[: self.m] + self.linear.quadratic(v)
        return np.vstack([top + self.part.cross @ v, bottom])

    def norm_times(self, U: Array) -> Array:
        """G U."""
        if self.part is None:
            return U
        top = self.part.G @ U[: self.m]
        return top if self.linear is None else np.vstack([top, U[self.m :]])


class CoupledForms:
    """The forms when the measure mixes the columns of psi: one system of size m k.

    Under a measure that is not a product, E[phi phi' psi_a psi_b] is not E[phi phi'] δ_ab; each
    pair (a, b) has forms of its own, with row weights psi_a psi_b. Coefficients are the columns of
    U stacked into one vector of one column.

    Parameters
    ----------
    blocks : dict from (a, b), a <= b, to QuadraticForms
        The forms of each pair.
    M : array of shape (m, k)
        The mean difference.
    """

    def __init__(self, blocks: dict[tuple[int, int], QuadraticForms], M: Array) -> None:
        self.blocks, self.k = blocks, M.shape[1]
        self.M = M.T.reshape(-1, 1)
        self.n_features = blocks[0, 0].n_features

    def split(self, U: Array) -> Array:
        """The coefficients as a matrix, one column for each column of psi."""
        return U.reshape(self.k, -1).T

    def _block(self, a: int, b: int) -> QuadraticForms:
        return self.blocks[min(a, b), max(a, b)]

    def system(self, weights: Array, lam: float, rho: float, tau: float) -> Array:
        """The matrix A in full."""
        k = range(self.k)
        return np.block(
            [
                [self._block(a, b).system(weights, lam, rho, tau if a == b else 0.0) for b in k]
                for a in k
            ]
        )

    def solve(
        self, weights: Array, lam: float, rho: float, tau: float, M: Array | None = None
    ) -> Array:
        """The critic for given eta (Alg. 1, u-step)."""
        A = self.system(weights, lam, rho, tau)
        return sl.cho_solve((cholesky(A), True), self.M if M is None else M, check_finite=False)

    def squared_gradients(self, U: Array, V: Array | None = None) -> Array:
        """E|∂_j f|² for every feature j."""
        left = self.split(U)
        right = left if V is None else self.split(V)
        total = np.zeros(self.n_features)
        for a in range(self.k):
            for b in range(self.k):
                total += self._block(a, b).squared_gradients(left[:, [a]], right[:, [b]])
        return total

    def covariance_times(self, U: Array) -> Array:
        """C U."""
        columns = self.split(U)
        rows = [
            sum(self._block(a, b).covariance_times(columns[:, [b]]) for b in range(self.k))
            for a in range(self.k)
        ]
        return np.vstack(rows)

    def norm_times(self, U: Array) -> Array:
        """G U."""
        columns = self.split(U)
        return np.vstack([self.blocks[a, a].norm_times(columns[:, [a]]) for a in range(self.k)])


def cholesky(A: Array) -> Array:
    """Lower Cholesky factor; a matrix that rounding made indefinite gets the least ridge."""
    scale = float(np.abs(np.diag(A)).max())
    for ridge in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        shifted = A if ridge == 0.0 else A + ridge * scale * np.eye(A.shape[0])
        try:
            return sl.cholesky(shifted, lower=True, check_finite=False)
        except sl.LinAlgError:
            continue
    raise FloatingPointError(
        "the system of the critic is not positive definite; raise `tau` or lower `lam`."
    )
