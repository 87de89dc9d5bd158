from functools import partial

import numpy as np
import pandas as pd
import pytest

from sobolev.datasets import make_liang, make_sine_radius, make_sinexp, make_xor
from sobolev.datasets.synthetic import liang_signal

MAKERS = {
    "sinexp": make_sinexp,
    "sinexp-gaussian": partial(make_sinexp, distribution="gaussian"),
    "liang": make_liang,
    "xor": make_xor,
    "xor-labels": partial(make_xor, classification=True),
    "sine-radius": make_sine_radius,
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def named_columns(bunch):
    return dict(zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True))


def sinexp_signal(x1, x2, x3, x4, x5, x6):
    return np.sin(x1 * (x1 + x2)) * np.cos(x3 + x4 * x5) * np.sin(np.exp(x5) + np.exp(x6) - x2)


# Randomness


@every_maker
def test_same_seed_same_data(make):
    first, second = make(30, random_state=4), make(30, random_state=4)
    np.testing.assert_array_equal(first.data, second.data)
    np.testing.assert_array_equal(first.target, second.target)


@every_maker
def test_other_seed_or_no_seed_other_data(make):
    draws = [make(30, random_state=random_state).data[0, 0] for random_state in (4, 5, None, None)]
    assert len(set(draws)) == 4


@every_maker
def test_int_and_generator_agree(make):
    by_int = make(30, shuffle_features=True, random_state=4)
    by_generator = make(30, shuffle_features=True, random_state=np.random.default_rng(4))
    np.testing.assert_array_equal(by_int.data, by_generator.data)
    np.testing.assert_array_equal(by_int.target, by_generator.target)


@every_maker
def test_random_state_is_accepted_and_repeatable(make):
    first, second = (make(30, random_state=np.random.RandomState(4)).data for _ in range(2))
    np.testing.assert_array_equal(first, second)


@every_maker
def test_global_generator_is_untouched_and_unused(make):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make(30, shuffle_features=True)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# Names and shapes


@every_maker
def test_shuffling_moves_names_and_support_with_the_columns(make):
    plain = make(30, random_state=4)
    shuffled = make(30, shuffle_features=True, random_state=4)
    columns, shuffled_columns = named_columns(plain), named_columns(shuffled)
    for name, column in columns.items():
        np.testing.assert_array_equal(shuffled_columns[name], column)
    np.testing.assert_array_equal(shuffled.target, plain.target)
    assert set(shuffled.feature_names[shuffled.support]) == set(plain.feature_names[plain.support])
    assert list(shuffled.feature_names) != list(plain.feature_names)


@pytest.mark.parametrize(
    ("make", "n_true"),
    [
        (make_sinexp, 6),
        (make_liang, 40),
        (partial(make_liang, n_informative=8), 8),
        (partial(make_xor, n_informative=3), 3),
        (make_sine_radius, 2),
    ],
)
def test_true_features_are_the_first_by_name(make, n_true):
    bunch = make(10, 60, shuffle_features=True, random_state=0)
    assert bunch.data.shape == (10, 60)
    assert bunch.data.dtype == np.float64
    assert set(bunch.feature_names[bunch.support]) == {f"x{j + 1}" for j in range(n_true)}


def test_shuffling_scatters_the_true_columns_evenly():
    # The mean position of x1 among 20 columns over 400 seeds: mean 9.5, standard error 0.29.
    shuffled = (make_sinexp(1, 20, shuffle_features=True, random_state=s) for s in range(400))
    positions = [list(bunch.feature_names).index("x1") for bunch in shuffled]
    assert abs(np.mean(positions) - 9.5) < 4 * 0.29
    assert set(positions) == set(range(20))


@every_maker
def test_pandas_and_tuple_forms_hold_the_same_data(make):
    bunch = make(30, shuffle_features=True, random_state=4)
    form = partial(make, 30, shuffle_features=True, random_state=4)
    X, y = form(return_X_y=True)
    frame = form(as_frame=True)
    X_frame, y_series = form(return_X_y=True, as_frame=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    expected = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    for data, target in ((frame.data, frame.target), (X_frame, y_series)):
        pd.testing.assert_frame_equal(data, expected)
        pd.testing.assert_series_equal(target, pd.Series(bunch.target, name="y"))


# The responses: recomputed from the named columns, so no other column can matter


@pytest.mark.parametrize("distribution", ["uniform", "gaussian"])
def test_sinexp_response(distribution):
    bunch = make_sinexp(
        50, distribution=distribution, snr=np.inf, shuffle_features=True, random_state=1
    )
    columns = named_columns(bunch)
    signal = sinexp_signal(*(columns[f"x{j}"] for j in range(1, 7)))
    np.testing.assert_allclose(bunch.target, signal, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_liang_response(seed):
    bunch = make_liang(
        100, 10, n_informative=4, noise=0.0, shuffle_features=True, random_state=seed
    )
    columns = named_columns(bunch)
    x = np.stack([columns[f"x{j}"] for j in range(1, 5)])

    def response(x, w0, w1, w2, w21, w22):
        return w0 * x[0] + w1 * x[1] + w2 * np.tanh(w21 * x[2] + w22 * x[3])

    np.testing.assert_allclose(response(x, *bunch.weights[:, 0]), bunch.target, atol=1e-12)
    np.testing.assert_allclose(liang_signal(x.T, bunch.weights), bunch.target, atol=1e-12)


def test_liang_linear_weights_have_means_one_and_two():
    # 100 weights of variance 1 each, so the standard error of their mean is 0.1.
    X, y = make_liang(3000, 400, n_informative=400, random_state=0, return_X_y=True)
    coefficients, *_ = np.linalg.lstsq(X, y, rcond=None)
    assert coefficients[0::4].mean() == pytest.approx(1, abs=0.5)
    assert coefficients[1::4].mean() == pytest.approx(2, abs=0.5)


@pytest.mark.parametrize("n_informative", [1, 2, 3])
def test_xor_response(n_informative):
    make = partial(
        make_xor, 200, 10, n_informative=n_informative, shuffle_features=True, random_state=2
    )
    numbers, labels = make(), make(classification=True)
    n_negative = (numbers.data[:, numbers.support] < 0).sum(axis=1)
    np.testing.assert_array_equal(numbers.target, np.where(n_negative % 2, -1.0, 1.0))
    np.testing.assert_array_equal(labels.target, np.where(n_negative % 2, "odd", "even"))


def test_sine_radius_response():
    bunch = make_sine_radius(100, 10, noise=0.0, shuffle_features=True, random_state=2)
    radius = (bunch.data[:, bunch.support] ** 2).sum(axis=1)
    np.testing.assert_allclose(bunch.target, 5 * np.sin(4 * np.pi * radius), atol=1e-10)


# The distributions


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("distribution", ["uniform", "gaussian"])
def test_sinexp_correlation(distribution, correlation):
    X = make_sinexp(
        40_000, 8, distribution=distribution, correlation=correlation, random_state=0
    ).data
    pairs = np.corrcoef(X.T)[np.triu_indices(8, k=1)]
    # The standard error of a correlation is at most 1/sqrt(n) = 0.005.
    np.testing.assert_allclose(pairs, correlation, atol=0.025)


def test_sinexp_uniform_marginal():
    X = make_sinexp(20_000, 6, correlation=0.0, random_state=0).data
    assert X.min() >= 0
    assert X.max() <= 1
    np.testing.assert_allclose(X.mean(axis=0), 0.5, atol=5 * np.sqrt(1 / 12 / 20_000))


def test_liang_features_have_correlation_one_half_and_variance_one_half():
    X = make_liang(40_000, 8, n_informative=4, random_state=0).data
    np.testing.assert_allclose(np.cov(X.T), 0.25 + 0.25 * np.eye(8), atol=0.02)


@pytest.mark.parametrize("snr", [0.5, 2.0, 10.0])
def test_sinexp_signal_to_noise_ratio(snr):
    X, y = make_sinexp(20_000, 6, snr=snr, random_state=0, return_X_y=True)
    signal = sinexp_signal(*X.T)
    # A variance of n normal draws has relative standard error sqrt(2/n) = 0.01.
    assert signal.var() / (y - signal).var() == pytest.approx(snr, rel=0.05)


@pytest.mark.parametrize("make", [make_liang, make_xor, make_sine_radius])
def test_noise_is_added_to_the_same_signal(make):
    quiet = make(5000, 40, noise=0.0, random_state=0)
    loud = make(5000, 40, noise=3.0, random_state=0)
    np.testing.assert_array_equal(quiet.data, loud.data)
    noise = loud.target - quiet.target
    # The relative standard error of a standard deviation is 1/sqrt(2n) = 0.01.
    assert noise.std() == pytest.approx(3.0, rel=0.05)
    assert abs(noise.mean()) < 5 * 3 / np.sqrt(5000)


# Errors


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (partial(make_sinexp, 0), ValueError, "n_samples == 0, must be >= 1"),
        (partial(make_sinexp, 10.5), TypeError, "n_samples must be an instance of int"),
        (partial(make_sinexp, 10, 5), ValueError, "n_features == 5, must be >= 6"),
        (partial(make_sinexp, distribution="cauchy"), ValueError, 'choose "uniform" or "gaussian"'),
        (partial(make_sinexp, correlation=-0.1), ValueError, "correlation == -0.1, must be >= 0"),
        (partial(make_sinexp, correlation=1.0), ValueError, "correlation == 1.0, must be < 1"),
        (partial(make_sinexp, snr=0), ValueError, "choose snr > 0"),
        (partial(make_sinexp, snr=np.nan), ValueError, "snr == nan, must be finite"),
        (partial(make_sinexp, snr="2"), TypeError, "snr must be an instance of float"),
        (partial(make_sinexp, random_state="0"), TypeError, "random_state must be"),
        (
            partial(make_liang, n_informative=6),
            ValueError,
            "n_informative == 6, must be a mult",
        ),
        (partial(make_liang, 10, 30), ValueError, "n_features == 30, must be >= 40"),
        (partial(make_liang, noise=-1), ValueError, "noise == -1, must be >= 0"),
        (partial(make_xor, n_informative=0), ValueError, "n_informative == 0, must be >= 1"),
        (partial(make_sine_radius, noise=np.inf), ValueError, "noise == inf, must be finite"),
    ],
)
def test_wrong_arguments_are_named(call, error, match):
    with pytest.raises(error, match=match):
        call()
