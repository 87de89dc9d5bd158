"""Simulated data whose true features are known.

The true features always have the first names: those of SinExp are x1, ..., x6, in any order of the
columns.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from sobolev._random import RandomState, check_generator
from sobolev._typing import AnyArray, Array
from sobolev.datasets._bunch import as_requested


def make_sinexp(
    n_samples: int = 500,
    n_features: int = 50,
    *,
    distribution: str = "uniform",
    correlation: float = 0.5,
    snr: float = 2.0,
    shuffle_features: bool = False,
    random_state: RandomState = None,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    r"""Simulate the SinExp data of the paper, with six interacting features.

    .. math::

        y = \sin(x_1 (x_1 + x_2)) \cos(x_3 + x_4 x_5) \sin(e^{x_5} + e^{x_6} - x_2)
            + \sigma \varepsilon

    with :math:`\varepsilon` standard normal. The features are
    :math:`x_j = \sqrt{r}\, z + \sqrt{1 - r}\, u_j`, where z is common to all features of a row.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows.
    n_features : int, default=50
        Number of columns, at least 6.
    distribution : {"uniform", "gaussian"}, default="uniform"
        Distribution of z and u: uniform on (0, 1) or standard normal.
    correlation : float, default=0.5
        Correlation r of each pair of features, 0 <= r < 1.
    snr : float, default=2.0
        Signal-to-noise ratio: the variance of the signal divided by that of the noise;
        ``float("inf")`` for no noise.
    shuffle_features : bool, default=False
        Whether to put the columns in random order; otherwise the true features come first.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator; the same int gives the same data.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.
    as_frame : bool, default=False
        Whether to return the data as a DataFrame and the target as a Series.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Bunch with ``data`` (n_samples, n_features), ``target`` (n_samples,), ``feature_names``,
        ``support`` (True for the true features) and ``DESCR``.
    (data, target) : tuple, if ``return_X_y`` is True

    Examples
    --------
    >>> from sobolev.datasets import make_sinexp
    >>> sinexp = make_sinexp(n_samples=100, n_features=20, shuffle_features=True, random_state=0)
    >>> sinexp.data.shape
    (100, 20)
    >>> sorted(sinexp.feature_names[sinexp.support].tolist())
    ['x1', 'x2', 'x3', 'x4', 'x5', 'x6']
    """
    _check_shape(n_samples, n_features, n_informative=6)
    if distribution not in ("uniform", "gaussian"):
        raise ValueError(f'distribution={distribution!r}; choose "uniform" or "gaussian".')
    _check_real(correlation, "correlation", max_val=1, include_boundaries="left")
    if snr != np.inf:
        _check_real(snr, "snr")
    if snr == 0:
        raise ValueError("snr == 0 leaves no signal; choose snr > 0.")

    rng = check_generator(random_state)
    draw = rng.random if distribution == "uniform" else rng.standard_normal
    z, u = draw((n_samples, 1)), draw((n_samples, n_features))
    X = np.sqrt(correlation) * z + np.sqrt(1 - correlation) * u
    signal = sinexp_signal(X)
    y = signal + signal.std() / np.sqrt(snr) * rng.standard_normal(n_samples)
    descr = f"SinExp: six interacting features, {distribution}, SNR {snr:g}."
    form = {"return_X_y": return_X_y, "as_frame": as_frame}
    return _shuffled(X, y, 6, shuffle_features, rng, DESCR=descr, **form)


def sinexp_signal(X: Array) -> Array:
    """The response of SinExp without noise, from the first six columns."""
    x1, x2, x3, x4, x5, x6 = X[:, :6].T
    wave = np.sin(x1 * (x1 + x2)) * np.cos(x3 + x4 * x5)
    return np.asarray(wave * np.sin(np.exp(x5) + np.exp(x6) - x2))


def make_liang(
    n_samples: int = 500,
    n_features: int = 500,
    *,
    n_informative: int = 40,
    noise: float = 0.5,
    shuffle_features: bool = False,
    random_state: RandomState = None,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    r"""Simulate the Liang data of the paper: half of the true features enter through a tanh.

    .. math::

        y = \sum_{j} w_{0j} x_{4j+1} + w_{1j} x_{4j+2}
            + w_{2j} \tanh(w_{21j} x_{4j+3} + w_{22j} x_{4j+4}) + \text{noise} \cdot \varepsilon

    with :math:`\varepsilon` standard normal, weights of unit variance and means 1, 2, 2, 1, 2 in
    this order, and features :math:`x_j = (z + u_j) / 2` of standard normal z (common to a row) and
    u, so that each pair has correlation 1/2.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows.
    n_features : int, default=500
        Number of columns, at least ``n_informative``.
    n_informative : int, default=40
        Number of true features, a multiple of 4.
    noise : float, default=0.5
        Standard deviation of the noise.
    shuffle_features : bool, default=False
        Whether to put the columns in random order; otherwise the true features come first.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator; the same int gives the same data.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.
    as_frame : bool, default=False
        Whether to return the data as a DataFrame and the target as a Series.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Bunch with ``data`` (n_samples, n_features), ``target`` (n_samples,), ``feature_names``,
        ``support`` (True for the true features), ``weights`` (in the order above, one column for
        each j) and ``DESCR``.
    (data, target) : tuple, if ``return_X_y`` is True

    Examples
    --------
    >>> from sobolev.datasets import make_liang
    >>> liang = make_liang(n_samples=100, random_state=0)
    >>> liang.data.shape, int(liang.support.sum())
    ((100, 500), 40)
    """
    _check_shape(n_samples, n_features, n_informative)
    if n_informative % 4:
        raise ValueError(f"n_informative == {n_informative}, must be a multiple of 4.")
    _check_real(noise, "noise")

    rng = check_generator(random_state)
    z, u = rng.standard_normal((n_samples, 1)), rng.standard_normal((n_samples, n_features))
    X = (z + u) / 2
    means = np.array([1.0, 2.0, 2.0, 1.0, 2.0])
    weights = rng.normal(means[:, None], size=(5, n_informative // 4))
    y = liang_signal(X, weights) + noise * rng.standard_normal(n_samples)
    descr = f"Liang: {n_informative} true features, linear and through tanh, noise {noise:g}."
    more = {"return_X_y": return_X_y, "as_frame": as_frame, "weights": weights}
    return _shuffled(X, y, n_informative, shuffle_features, rng, DESCR=descr, **more)


def liang_signal(X: Array, weights: Array) -> Array:
    """The response of Liang without noise, from the first columns."""
    w0, w1, w2, w21, w22 = weights
    a, b, c, d = (X[:, k : 4 * w0.size : 4] for k in range(4))
    return np.asarray(a @ w0 + b @ w1 + np.tanh(c * w21 + d * w22) @ w2)


def make_xor(
    n_samples: int = 1000,
    n_features: int = 50,
    *,
    n_informative: int = 2,
    noise: float = 0.0,
    classification: bool = False,
    shuffle_features: bool = False,
    random_state: RandomState = None,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    r"""Simulate the XOR problem, where no proper subset of the true features is informative.

    .. math:: y = \operatorname{sign}(x_1 x_2 \cdots x_s) + \text{noise} \cdot \varepsilon

    with all features and :math:`\varepsilon` independent and standard normal.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=50
        Number of columns, at least ``n_informative``.
    n_informative : int, default=2
        Number s of true features.
    noise : float, default=0.0
        Standard deviation of the noise.
    classification : bool, default=False
        Whether to return labels instead of numbers: "even" if y > 0 (without noise, an even number
        of true features is negative), otherwise "odd".
    shuffle_features : bool, default=False
        Whether to put the columns in random order; otherwise the true features come first.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator; the same int gives the same data.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.
    as_frame : bool, default=False
        Whether to return the data as a DataFrame and the target as a Series.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Bunch with ``data`` (n_samples, n_features), ``target`` (n_samples,), ``feature_names``,
        ``support`` (True for the true features) and ``DESCR``.
    (data, target) : tuple, if ``return_X_y`` is True

    Examples
    --------
    >>> from sobolev.datasets import make_xor
    >>> make_xor(n_samples=4, random_state=0).target
    array([-1., -1.,  1., -1.])
    >>> make_xor(n_samples=4, classification=True, random_state=0).target.tolist()
    ['odd', 'odd', 'even', 'odd']
    """
    _check_shape(n_samples, n_features, n_informative)
    _check_real(noise, "noise")

    rng = check_generator(random_state)
    X = rng.standard_normal((n_samples, n_features))
    signal = np.sign(X[:, :n_informative]).prod(axis=1)
    y = signal + noise * rng.standard_normal(n_samples)
    target = np.where(y > 0, "even", "odd") if classification else y
    descr = f"XOR: the sign of the product of {n_informative} features, noise {noise:g}."
    form = {"return_X_y": return_X_y, "as_frame": as_frame}
    return _shuffled(X, target, n_informative, shuffle_features, rng, DESCR=descr, **form)


def make_sine_radius(
    n_samples: int = 1000,
    n_features: int = 50,
    *,
    noise: float = 0.25,
    shuffle_features: bool = False,
    random_state: RandomState = None,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    r"""Simulate a response that oscillates with the squared radius of two features.

    .. math:: y = 5 \sin(4 \pi (x_1^2 + x_2^2)) + \text{noise} \cdot \varepsilon

    with all features and :math:`\varepsilon` independent and standard normal.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=50
        Number of columns, at least 2.
    noise : float, default=0.25
        Standard deviation of the noise.
    shuffle_features : bool, default=False
        Whether to put the columns in random order; otherwise the true features come first.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator; the same int gives the same data.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.
    as_frame : bool, default=False
        Whether to return the data as a DataFrame and the target as a Series.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Bunch with ``data`` (n_samples, n_features), ``target`` (n_samples,), ``feature_names``,
        ``support`` (True for the true features) and ``DESCR``.
    (data, target) : tuple, if ``return_X_y`` is True

    Examples
    --------
    >>> from sobolev.datasets import make_sine_radius
    >>> make_sine_radius(n_samples=100, n_features=4, random_state=0).support
    array([ True,  True, False, False])
    """
    _check_shape(n_samples, n_features, n_informative=2)
    _check_real(noise, "noise")

    rng = check_generator(random_state)
    X = rng.standard_normal((n_samples, n_features))
    signal = 5 * np.sin(4 * np.pi * (X[:, 0] ** 2 + X[:, 1] ** 2))
    y = signal + noise * rng.standard_normal(n_samples)
    descr = f"Sine of the squared radius of two features, noise {noise:g}."
    form = {"return_X_y": return_X_y, "as_frame": as_frame}
    return _shuffled(X, y, 2, shuffle_features, rng, DESCR=descr, **form)


def _check_shape(n_samples: int, n_features: int, n_informative: int) -> None:
    check_scalar(n_samples, "n_samples", Integral, min_val=1)
    check_scalar(n_informative, "n_informative", Integral, min_val=1)
    check_scalar(n_features, "n_features", Integral, min_val=n_informative)


def _check_real(value: float, name: str, **limits: Any) -> None:
    check_scalar(value, name, Real, min_val=0, **limits)
    if not np.isfinite(value):
        raise ValueError(f"{name} == {value}, must be finite.")


def _shuffled(
    X: Array, y: AnyArray, n_informative: int, shuffle: bool, rng: np.random.Generator, **more: Any
) -> Any:
    """Name the columns, shuffle them if requested, and return the requested type."""
    names = np.array([f"x{j + 1}" for j in range(X.shape[1])], dtype=object)
    support = np.arange(X.shape[1]) < n_informative
    # The last draw, so that the same seed gives the same named columns with and without it.
    if shuffle:
        order = rng.permutation(X.shape[1])
        X, names, support = X[:, order], names[order], support[order]
    return as_requested(X, y, names, target_name="y", support=support, **more)
