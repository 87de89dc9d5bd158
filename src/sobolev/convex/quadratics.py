r"""The quadratic forms of convex SIC on a sample: M, C, G and :math:`\sum_j w_j D_j`.

A critic :math:`f(x, y) = \phi(x)^\top U \psi(y)` has, under the product of the marginals,

- mean difference :math:`\langle U, M\rangle` with :math:`M = E\,\phi\psi^\top`,
- :math:`E f^2 = \operatorname{tr} U^\top C U` with :math:`C = E\,\phi\phi^\top` (phi centred),
- :math:`E |\partial_j f|^2 = \operatorname{tr} U^\top D_j U` with
  :math:`D_j = E\,\partial_j\phi\,\partial_j\phi^\top`,
- squared norm :math:`\operatorname{tr} U^\top G U` in its function space.

A feature map has a nonlinear *part* and a linear block x. The d matrices D_j are never formed:
a part gives their weighted sum (:meth:`Part.penalty`) and the values of their quadratic forms
(:meth:`Part.gradient_products`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy.linalg as sl

from sobolev._typing import Array, Index

if TYPE_CHECKING:
    from sobolev.convex.feature_maps import BoundLandmarkMap


# With more rows than this, sums of D_j that are asked for again and again are made of the D_j, as
# far as those take no more than this many numbers.
MANY_ROWS, MAX_KEPT = 2000, 2**23
# Number of sums for which the D_j do not pay off: that of a round before the last.
FEW_SUMS = 5


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


class SampledPart:
    """Moments of any map from its values at the rows.

    Parameters
    ----------
    values : array of shape (n, m)
        phi at the rows.
    X, psi : array of shape (n, d), (n, k)
        The rows and the encoded response.
    p, omega : array of shape (n,)
        Probabilities of the rows, and their weights in the second moments (equal to p for the
        product measure; they may be negative in a block of a coupled system).
    """

    def __init__(self, values: Array, X: Array, psi: Array, p: Array, omega: Array) -> None:
        self.mean = p @ values
        centred = values - self.mean
        self.M = centred.T @ (p[:, None] * psi)
        self.C = _gram(centred, omega)
        self.cross = centred.T @ (omega[:, None] * X)


def _gram(A: Array, omega: Array) -> Array:
    """A' diag(omega) A."""
    if A.shape[0] <= MANY_ROWS or omega.min() < 0:
        return np.asarray(A.T @ (omega[:, None] * A))
    rooted = A * np.sqrt(omega)[:, None]
    return np.asarray(rooted.T @ rooted)  # numpy computes half of a symmetric product


class LandmarkPart(SampledPart):
    """Radial kernel functions centred at landmarks, phi_k(x) = kappa(q(x, c_k) / 2).

    With q(x, c) = sum_j g_j (x_j - c_j)², the derivatives are
    ∂_j phi_k(x) = -g_j (x_j - c_kj) H_k(x), H = -kappa'. For a = g² w, s_i = sum_j a_j x_ij²,
    T = X diag(a) C', R = C diag(a) C':

        sum_j w_j D_j = H' diag(p s) H - (H∘T)' diag(p) H - H' diag(p) (H∘T) + (H' diag(p) H)∘R

    where p are the row weights: a few matrix products and no loop over features. Of many rows and
    few features, the D_j themselves are formed once they pay off.

    Parameters
    ----------
    bound : BoundLandmarkMap
        The landmarks, the kernel and the metric divided by the squared bandwidth.
    X, psi, p, omega : array
        As for :class:`SampledPart`.
    """

    def __init__(
        self, bound: BoundLandmarkMap, X: Array, psi: Array, p: Array, omega: Array
    ) -> None:
        K, H = bound.kernel(X)
        super().__init__(K, X, psi, p, omega)
        g, centers = bound.g, bound.centers
        self.X, self.centers, self.H, self.g = X, centers, H, g
        self.G = bound.kernel(centers)[0]
        self.omega, self._squares = omega, X**2
        self._n_sums, self._each = 0, np.empty((0, 0))
        self._weighted_H = H * omega[:, None]
        self._HH = _gram(H, omega)
        # E ∂_j phi_k = -g_j (E[x_j H_k] - c_kj E[H_k])
        self.mean_derivative = -g * (
            self._weighted_H.T @ X - centers * self._weighted_H.sum(axis=0)[:, None]
        )

    def penalty(self, weights: Array) -> Array:
        """The sum of w_j D_j."""
        self._n_sums += 1
        if self._n_sums > max(FEW_SUMS, self.g.size // 2) and self._may_keep():
            if not self._each.size:
                self._each = self._every_square()
            return np.asarray((weights @ self._each).reshape(self.G.shape))
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

    def _may_keep(self) -> bool:
        n, m = self.H.shape
        return n > MANY_ROWS and self.g.size * m * m <= MAX_KEPT

    def _every_square(self) -> Array:
        """The D_j, each in a row."""
        found = [
            _gram(self.H * (g * (c - x[:, None])), self.omega).ravel()
            for g, c, x in zip(self.g, self.centers.T, self.X.T, strict=True)
        ]
        return np.array(found)

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


@dataclass
class FourierPart:
    """Pairs cos(w·x), sin(w·x), from their moments alone.

    With delta = (-sin, cos), ∂_j phi_k = w_kj delta_k, so that
    sum_j w_j D_j = (F diag(weights) F')∘S, S = E delta delta', F the stacked frequencies. S is a
    rearrangement of E phi phi': one Gram matrix serves both.

    Attributes
    ----------
    frequencies, mean_derivative : array of shape (m, d)
        The frequencies, stacked twice, and their products with E delta.
    mean : array of shape (m,)
        E phi.
    C, S : array of shape (m, m)
        Covariance of phi, and E delta delta'.
    M : array of shape (m, k)
        Covariance of phi and psi.
    cross : array of shape (m, d)
        Covariance of phi and x (empty without a linear block).
    """

    frequencies: Array
    mean: Array
    mean_derivative: Array
    C: Array
    S: Array
    M: Array
    cross: Array

    def __post_init__(self) -> None:
        self.G = np.eye(self.mean.size)

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


class DensePart(SampledPart):
    """Any map, from its values and derivatives; D_j is kept on the functions that use x_j.

    Parameters
    ----------
    values, X, psi, p, omega : array
        As for :class:`SampledPart`.
    derivatives : list of (j, columns, array of shape (n, len(columns)))
        For each feature that functions use, these functions and their derivatives.
    """

    def __init__(
        self,
        values: Array,
        derivatives: list[tuple[int, Index, Array]],
        X: Array,
        psi: Array,
        p: Array,
        omega: Array,
    ) -> None:
        super().__init__(values, X, psi, p, omega)
        self.G = np.eye(values.shape[1])
        self.mean_derivative = np.zeros((values.shape[1], X.shape[1]))
        self.D: list[tuple[int, Index, Array]] = []
        for j, columns, derivative in derivatives:
            weighted = omega[:, None] * derivative
            self.mean_derivative[columns, j] = weighted.sum(axis=0)
            self.D.append((j, columns, derivative.T @ weighted))

    def penalty(self, weights: Array) -> Array:
        """The sum of w_j D_j."""
        total = np.zeros_like(self.C)
        for j, columns, D in self.D:
            total[np.ix_(columns, columns)] += weights[j] * D
        return total

    def gradient_products(self, U: Array, V: Array) -> Array:
        """tr U' D_j V for every feature j."""
        total = np.zeros(self.mean_derivative.shape[1])
        for j, columns, D in self.D:
            total[j] = np.sum(U[columns] * (D @ V[columns]))
        return total


@dataclass
class LinearPart:
    """The linear block: functions x_j with ∂_j x_j = 1 and D_j = mass e_j e_j'.

    Attributes
    ----------
    M : array of shape (d, k)
        Covariance of x and psi.
    factor : array of shape (d, d), or (n, d) if ``wide``
        Covariance of x or, if ``wide``, the centred rows times the root of their weights.
    wide : bool
        Whether there are fewer rows than features.
    mass : float
        Sum of the weights of the second moments: one, but for a block of a coupled system.
    """

    M: Array
    factor: Array
    wide: bool = False
    mass: float = 1.0

    @classmethod
    def from_rows(cls, X: Array, psi: Array, p: Array, omega: Array) -> LinearPart:
        """Build the block from rows, in its cheaper form."""
        wide = X.shape[1] > X.shape[0] and bool(omega.min() >= 0)
        factor = X * np.sqrt(omega)[:, None] if wide else X.T @ (omega[:, None] * X)
        return cls(X.T @ (p[:, None] * psi), factor, wide, float(omega.sum()))

    def covariance(self) -> Array:
        """The covariance of x, formed if need be."""
        return self.factor.T @ self.factor if self.wide else self.factor

    def quadratic(self, v: Array) -> Array:
        """Cov(x) v."""
        return self.factor.T @ (self.factor @ v) if self.wide else self.factor @ v


class ShiftedGram:
    """A = diag(b) + rho Cov(x), factored by Cholesky or, if there are few rows, by Woodbury."""

    def __init__(self, linear: LinearPart, b: Array, rho: float) -> None:
        self.wide = linear.wide
        if not self.wide:
            A = rho * linear.factor
            A[np.diag_indices_from(A)] += b
            self.factor = cholesky(A)
        else:
            self.root = np.sqrt(b)
            self.scaled = linear.factor / self.root
            small = self.scaled @ self.scaled.T  # numpy computes half of a symmetric product
            small[np.diag_indices_from(small)] += 1.0 / rho if rho > 0 else np.inf
            self.factor = cholesky(small)

    def solve(self, rhs: Array) -> Array:
        """A⁻¹ times the right-hand side."""
        if not self.wide:
            return sl.cho_solve((self.factor, True), rhs, check_finite=False)
        rhs = rhs / self.root[:, None]
        inner = sl.cho_solve((self.factor, True), self.scaled @ rhs, check_finite=False)
        return (rhs - self.scaled.T @ inner) / self.root[:, None]

    def quadratic_inverse(self, B: Array) -> Array:
        """B A⁻¹ B'."""
        if not self.wide:
            half = sl.solve_triangular(self.factor, B.T, lower=True, check_finite=False)
            return half.T @ half
        B = B / self.root
        half = sl.solve_triangular(self.factor, self.scaled @ B.T, lower=True, check_finite=False)
        return B @ B.T - half.T @ half


class QuadraticForms:
    """The forms of a map made of a nonlinear part, of no functions perhaps, and a linear block.

    Coefficients are stacked: the nonlinear part's first, the linear block's after.

    Parameters
    ----------
    part : Part
        The nonlinear part.
    linear : LinearPart or None
        The linear block.
    """

    def __init__(self, part: Part, linear: LinearPart | None) -> None:
        self.part, self.linear = part, linear
        self.M = part.M if linear is None else np.vstack([part.M, linear.M])
        self.m, self.n_features = part.mean_derivative.shape

    @property
    def mean(self) -> Array:
        """Mean of the map's values; the linear block's columns are centred already."""
        return np.append(self.part.mean, np.zeros(self.M.shape[0] - self.m))

    def solve(
        self, weights: Array, lam: float, rho: float, tau: float, M: Array | None = None
    ) -> Array:
        """The critic for given eta (Alg. 1, u-step): A U = M, A = lam Σ w_j D_j + rho C + tau G."""
        M = self.M if M is None else M
        A = self._nonlinear_block(weights, lam, rho, tau)
        if self.linear is None:
            return sl.cho_solve((cholesky(A), True), M, check_finite=False)
        A_vv = ShiftedGram(self.linear, lam * self.linear.mass * weights + tau, rho)
        if self.m == 0:
            return A_vv.solve(M)
        # The linear block is eliminated first (Schur complement): its matrix is diagonal plus Gram.
        B = self._cross_block(weights, lam, rho)
        A -= A_vv.quadratic_inverse(B)
        rhs = M[: self.m] - B @ A_vv.solve(M[self.m :])
        u = sl.cho_solve((cholesky(A), True), rhs, check_finite=False)
        v = A_vv.solve(M[self.m :] - B.T @ u)
        return np.vstack([u, v])

    def _nonlinear_block(self, weights: Array, lam: float, rho: float, tau: float) -> Array:
        return lam * self.part.penalty(weights) + rho * self.part.C + tau * self.part.G

    def _cross_block(self, weights: Array, lam: float, rho: float) -> Array:
        return lam * self.part.mean_derivative * weights + rho * self.part.cross

    def system(self, weights: Array, lam: float, rho: float, tau: float) -> Array:
        """The matrix A in full."""
        A = self._nonlinear_block(weights, lam, rho, tau)
        if self.linear is None:
            return A
        B = self._cross_block(weights, lam, rho)
        shift = np.diag(lam * self.linear.mass * weights + tau)
        return np.block([[A, B], [B.T, rho * self.linear.covariance() + shift]])

    def squared_gradients(self, U: Array, V: Array | None = None) -> Array:
        """tr U' D_j V for every feature j; V is U if not given."""
        V = U if V is None else V
        total = self.part.gradient_products(U[: self.m], V[: self.m])
        if self.linear is not None:
            u, v = U[self.m :], V[self.m :]
            slope = self.part.mean_derivative.T
            total += self.linear.mass * np.sum(u * v, axis=1)
            total += np.sum(u * (slope @ V[: self.m]) + v * (slope @ U[: self.m]), axis=1)
        return total

    def covariance_times(self, U: Array) -> Array:
        """C U."""
        u, v = U[: self.m], U[self.m :]
        if self.linear is None:
            return self.part.C @ u
        bottom = self.part.cross.T @ u + self.linear.quadratic(v)
        return np.vstack([self.part.C @ u + self.part.cross @ v, bottom])

    def norm_times(self, U: Array) -> Array:
        """G U."""
        return np.vstack([self.part.G @ U[: self.m], U[self.m :]])


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
