"""ConvexSIC: invariances, weights, randomness, errors, and the relations between its results."""

import pickle
import warnings
from dataclasses import fields

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sobolev import ConvexSIC
from sobolev.convex import Alternating, AutoMap, BlockCoordinateDescent, FourierMap, LandmarkMap
from sobolev.convex.fitting import LAMS
from sobolev.convex.training import prepare
from sobolev.criterion import normalized_importances
from sobolev.datasets import make_sinexp
from sobolev.exceptions import ConvergenceWarning, DataWarning
from sobolev.targets import TargetEncoder

N, D = 120, 8
DATA = make_sinexp(N, D, random_state=0)
X, Y = DATA.data, DATA.target
NAMES = [f"gene{j}" for j in range(D)]
LABELS = np.array(["high", "low", "mid"])[np.digitize(Y, np.quantile(Y, [1 / 3, 2 / 3]))]
SEVERAL = np.column_stack([Y, X[:, 0] - X[:, 1]])
MAPS = ["landmark", "fourier", "linear", "polynomial"]


SIZED_MAPS = {"auto": AutoMap, "landmark": LandmarkMap, "fourier": FourierMap}
SOLVERS = {"alternating": Alternating, "bcd": BlockCoordinateDescent}
SOLVER_FIELDS = {field.name for field in fields(BlockCoordinateDescent)}


def sic(feature_map="auto", n_components=60, solver="alternating", **parameters):
    """A fast estimator whose result does not depend on when the test runs.

    Fields of the solver are passed on to it, ``n_components`` to the map.
    """
    settings = {name: parameters.pop(name) for name in SOLVER_FIELDS & parameters.keys()}
    if isinstance(feature_map, str) and feature_map in SIZED_MAPS:
        feature_map = SIZED_MAPS[feature_map](n_components)
    if settings:
        solver = SOLVERS[solver](**settings)
    options = {"lam": 0.03, "random_state": 0, "feature_map": feature_map, "solver": solver}
    return ConvexSIC(**(options | parameters))


def importances(*data, sample_weight=None, **parameters):
    return sic(**parameters).fit(*data, sample_weight).feature_importances_


# Mathematics at the surface


@pytest.mark.parametrize("feature_map", MAPS)
@pytest.mark.parametrize("y", [Y, LABELS, SEVERAL], ids=["numbers", "labels", "several"])
def test_importances_sum_to_one_and_the_corollary_holds(feature_map, y):
    fitted = sic(feature_map=feature_map).fit(X, y)
    assert fitted.feature_importances_.sum() == pytest.approx(1.0, abs=1e-8)
    assert np.all(fitted.feature_importances_ >= 0)
    terms = fitted.decomposition_
    assert fitted.sic_ == pytest.approx(terms.sic, rel=1e-8)
    assert fitted.sic_ == pytest.approx(0.5 * terms.mean_difference, rel=1e-12)
    assert terms.per_feature.sum() == pytest.approx(terms.gradient, rel=1e-12)
    assert np.diff(fitted.objective_curve_).max(initial=0.0) <= 1e-10 * fitted.sic_


@pytest.mark.parametrize("solver", ["alternating", "bcd"])
@pytest.mark.parametrize("measure", ["product", "permuted", "mixture", "joint"])
@pytest.mark.parametrize("y", [Y, LABELS], ids=["k=1", "k=2"])
def test_fixed_point_of_every_measure(measure, y, solver):
    fitted = sic(
        measure=measure, solver=solver, tol=1e-7, max_iter=3000, n_components=30, epsilon=1e-8
    ).fit(X, y)
    rows, settings, _ = prepare(clone(fitted), X, y, np.full(N, 1 / N))
    forms = rows.forms(fitted.critic_.bound, settings.measure, settings.seed)
    U = fitted.critic_.U
    U = U if U.shape == forms.M.shape else U.T.reshape(-1, 1)
    eta = normalized_importances(forms.squared_gradients(U), 1e-8)
    np.testing.assert_allclose(fitted.feature_importances_, eta, atol=1e-6)
    A = forms.system(1 / fitted.feature_importances_, 0.03, 1.0, 1e-4)
    residual = np.linalg.norm(A @ U - forms.M) / np.linalg.norm(forms.M)
    assert residual <= 1e-6
    assert fitted.sic_ == pytest.approx(fitted.decomposition_.sic, rel=1e-8)


@pytest.mark.parametrize("feature_map", MAPS)
def test_solvers_agree(feature_map):
    options = {"feature_map": feature_map, "rounds": 1, "tol": 1e-7, "max_iter": 5000}
    first = importances(X, Y, **options)
    np.testing.assert_allclose(importances(X, Y, solver="bcd", **options), first, atol=1e-5)


def test_continuation_in_epsilon_reaches_the_same_point():
    options = {"rounds": 1, "tol": 1e-8, "max_iter": 3000}
    direct = importances(X, Y, epsilon=1e-8, **options)
    path = importances(X, Y, epsilon=(1e-2, 1e-5, 1e-8), **options)
    np.testing.assert_allclose(path, direct, atol=1e-6)


@pytest.mark.parametrize("feature_map", MAPS)
def test_one_feature_has_all_the_importance(feature_map):
    fitted = sic(feature_map=feature_map).fit(X[:, :1], Y)
    np.testing.assert_allclose(fitted.feature_importances_, [1.0])
    assert fitted.support_.tolist() == [True]


def test_mean_witness_on_the_training_rows_is_twice_the_criterion():
    """The mean difference: E f under the joint distribution; under the product it is zero."""
    for y in (Y, LABELS, SEVERAL):
        fitted = sic().fit(X, y)
        assert fitted.witness(X, y).mean() == pytest.approx(2 * fitted.sic_, rel=1e-8)


@pytest.mark.parametrize("y", [Y, LABELS, SEVERAL], ids=["numbers", "labels", "several"])
def test_risk_is_the_witness_less_the_mean_square_over_the_response(y):
    """r(x, y) = f(x, y) - rho/2 E f(x, y~)², the mean taken over all training responses."""
    fitted = sic(rho=0.6).fit(X, y)
    new, n_new = X[:5] + 0.1, 5
    squares = np.mean(
        [fitted.witness(new, np.repeat(y[j : j + 1], n_new, axis=0)) ** 2 for j in range(N)], axis=0
    )
    witness = fitted.witness(new, y[:5])
    np.testing.assert_allclose(fitted.risk(new, y[:5]), witness - 0.3 * squares, rtol=1e-8)


def test_score_is_the_mean_risk():
    fitted = sic().fit(X, Y)
    weights = np.random.default_rng(0).exponential(size=N)
    risk = fitted.risk(X, Y)
    assert fitted.score(X, Y) == pytest.approx(risk.mean(), rel=1e-12)
    assert fitted.score(X, Y, weights) == pytest.approx(np.average(risk, weights=weights))


def test_with_rho_one_the_score_is_half_the_reduction_of_the_squared_error():
    """f(x, y) = h(x) psi(y), so 2 risk = psi² - (psi - h)²: on the training rows 1 - MSE."""
    fitted = sic(rho=1.0).fit(X, Y)
    psi = (Y - Y.mean()) / Y.std()
    h = fitted.witness(X, Y) / psi
    assert fitted.score(X, Y) == pytest.approx(0.5 * (1 - np.mean((psi - h) ** 2)), rel=1e-9)


def test_linear_map_with_little_penalty_is_least_squares():
    fitted = sic(feature_map="linear", lam=1e-9, tau=1e-9).fit(X, Y)
    Z, psi = (X - X.mean(axis=0)) / X.std(axis=0), (Y - Y.mean()) / Y.std()
    coefficients = np.linalg.lstsq(Z, psi)[0]
    np.testing.assert_allclose(fitted.witness(X, Y) / psi, Z @ coefficients, rtol=1e-5)
    # E|d_j f|² of a linear critic is its squared coefficient.
    np.testing.assert_allclose(
        fitted.feature_importances_,
        np.abs(coefficients) / np.abs(coefficients).sum(),
        atol=1e-3,
    )


# Invariances


@pytest.mark.parametrize("feature_map", ["landmark", "linear"])
@pytest.mark.parametrize("lam", [0.03, "auto"])
def test_duplicated_columns_share_equally(feature_map, lam):
    twice = np.column_stack([X, X[:, 0], X[:, 4], X[:, 4]])
    eta = importances(twice, Y, feature_map=feature_map, lam=lam)
    np.testing.assert_allclose(eta[[0, 4, 4]], eta[[8, 9, 10]], atol=1e-8)
    assert eta[0] > 1e-5


@pytest.mark.parametrize("feature_map", ["landmark", "linear"])
@pytest.mark.parametrize("y", [Y, LABELS, SEVERAL], ids=["numbers", "labels", "several"])
def test_order_of_columns_does_not_matter(feature_map, y):
    order = np.random.default_rng(0).permutation(D)
    options = {"feature_map": feature_map, "lam": "auto", "n_components": None}
    first = importances(X, y, **options)
    np.testing.assert_allclose(importances(X[:, order], y, **options), first[order], atol=1e-8)


@pytest.mark.parametrize("feature_map", ["landmark", "linear"])
@pytest.mark.parametrize("y", [Y, LABELS], ids=["numbers", "labels"])
def test_order_of_rows_does_not_matter(feature_map, y):
    order = np.random.default_rng(0).permutation(N)
    options = {"feature_map": feature_map, "lam": "auto", "n_components": None}
    first = importances(X, y, **options)
    np.testing.assert_allclose(importances(X[order], y[order], **options), first, atol=1e-8)


@pytest.mark.parametrize("feature_map", MAPS)
@pytest.mark.parametrize("lam", [0.03, "auto"])
def test_units_and_origins_of_columns_do_not_matter(feature_map, lam):
    rng = np.random.default_rng(1)
    scale = 10.0 ** rng.choice([-9, 0, 9], size=D)
    shift = 100 * rng.standard_normal(D)
    options = {"feature_map": feature_map, "lam": lam}
    first = importances(X, Y, **options)
    for moved in (X * scale, X + shift, (X + shift) * scale):
        np.testing.assert_allclose(importances(moved, Y, **options), first, atol=1e-6)


@pytest.mark.parametrize("feature_map", MAPS)
def test_unit_and_origin_of_the_response_do_not_matter(feature_map):
    first = importances(X, Y, feature_map=feature_map)
    for moved in (1e9 * Y, 1e-9 * Y, Y + 100, -Y):
        np.testing.assert_allclose(importances(X, moved, feature_map=feature_map), first, atol=1e-6)


def test_normal_scores_make_monotone_transforms_irrelevant():
    options = {"target": TargetEncoder(basis="normal_scores")}
    first = importances(X, Y, **options)
    np.testing.assert_allclose(importances(X, np.exp(3 * Y), **options), first, atol=1e-8)


def test_names_of_labels_do_not_matter():
    first = importances(X, LABELS)
    codes = np.unique(LABELS, return_inverse=True)[1]
    category = pd.Series(LABELS, dtype="category")
    for same in (codes, codes.astype(np.int8), codes.astype(float), category, (-codes).astype(str)):
        np.testing.assert_allclose(importances(X, same), first, atol=1e-8)


# Weights


def kinds_of_weighting():
    return [(m, lam, "product") for m in MAPS for lam in (0.03, "auto")] + [
        ("landmark", 0.03, "joint"),
        ("linear", "auto", "mixture"),
    ]


@pytest.mark.parametrize(("feature_map", "lam", "measure"), kinds_of_weighting())
def test_integer_weights_are_repetitions(feature_map, lam, measure):
    n = 60
    w = np.random.default_rng(2).integers(0, 4, size=n)
    rows = np.repeat(np.arange(n), w)
    options = {"feature_map": feature_map, "lam": lam, "measure": measure, "n_components": 40}
    weighted = sic(**options).fit(X[:n], Y[:n], w)
    repeated = sic(**options).fit(X[rows], Y[rows])
    assert weighted.lam_ == repeated.lam_
    np.testing.assert_allclose(
        weighted.feature_importances_, repeated.feature_importances_, atol=1e-7
    )
    assert weighted.sic_ == pytest.approx(repeated.sic_, rel=1e-7)
    np.testing.assert_allclose(
        weighted.witness(X, Y),
        repeated.witness(X, Y),
        atol=1e-6 * np.abs(repeated.witness(X, Y)).max(),
    )


@pytest.mark.parametrize("feature_map", MAPS)
def test_scale_of_the_weights_does_not_matter(feature_map):
    w = np.random.default_rng(3).exponential(size=N)
    first = importances(X, Y, sample_weight=w, feature_map=feature_map)
    second = importances(X, Y, sample_weight=1e6 * w, feature_map=feature_map)
    np.testing.assert_allclose(second, first, atol=1e-8)
    assert np.abs(first - importances(X, Y, feature_map=feature_map)).max() > 1e-4


def test_rows_of_no_weight_are_as_if_absent():
    """Even where they would change the classes or make a constant column vary."""
    rows = np.column_stack([X, np.zeros(N)])
    extra = np.vstack([rows, rows[:3] + 50])
    labels = np.concatenate([LABELS, ["other"] * 3])
    w = np.concatenate([np.ones(N), np.zeros(3)])
    with pytest.warns(DataWarning):
        weighted = sic().fit(extra, labels, w)
    assert weighted.classes_.tolist() == ["high", "low", "mid"]
    assert weighted.feature_importances_[-1] == 0
    np.testing.assert_allclose(
        weighted.feature_importances_[:-1], importances(X, LABELS), atol=1e-8
    )


# Columns without information


@pytest.mark.parametrize("feature_map", MAPS)
@pytest.mark.parametrize("value", [0.0, 1e9, 0.1])
def test_constant_columns_get_nothing(feature_map, value):
    rows = np.insert(X, 3, value, axis=1)
    with pytest.warns(DataWarning, match="importance 0: 3"):
        fitted = sic(feature_map=feature_map, n_features_to_select=D + 1).fit(rows, Y)
    assert fitted.feature_importances_[3] == 0.0
    assert not fitted.support_[3]
    assert fitted.support_.sum() == D
    assert fitted.decomposition_.per_feature.shape == (D + 1,)
    assert fitted.decomposition_.per_feature[3] == 0.0
    np.testing.assert_allclose(
        np.delete(fitted.feature_importances_, 3),
        importances(X, Y, feature_map=feature_map),
        atol=1e-9,
    )
    assert np.isfinite(fitted.witness(rows + np.eye(D + 1)[3], Y)).all()


def test_constant_columns_are_named():
    frame = pd.DataFrame(X, columns=NAMES).assign(flat=1.0)
    with pytest.warns(DataWarning, match="'flat'"):
        sic(feature_groups={"pair": ["flat", "gene0"]}).fit(frame, Y)


def test_only_constant_columns_are_an_error():
    with pytest.raises(ValueError, match="every column of X is constant"):
        sic().fit(np.ones((10, 2)), np.arange(10.0))


# Errors that name the column or the argument


def changed(value):
    frame = pd.DataFrame(X.copy(), columns=NAMES)
    frame.loc[3, "gene2"] = value
    return frame


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (changed(np.nan), Y, "NaN .*'gene2'.*impute or drop"),
        (changed(np.inf), Y, "infinity .*'gene2'.*impute or drop"),
        (changed(np.nan).to_numpy(), Y, "NaN .*column 2"),
        (pd.DataFrame(X, columns=NAMES).assign(gene5="text"), Y, "'gene5'.*tables.prepare"),
        (X.astype(str).astype(object) + "x", Y, "not numbers: 0, 1"),
        (X, np.full(N, 2.0), "y is constant"),
        (X, ["a"] * N, "y has one class"),
        (X, np.where(np.arange(N) == 7, np.nan, Y), "y contains NaN .*row 7"),
        (X[:3], Y[:3], "n_samples = 3 .*at least 4"),
        (X, Y[:-1], "X has 120 rows but y has 119"),
        (X, None, "requires y"),
    ],
)
def test_data_that_cannot_be_used_are_named(rows, y, message):
    with pytest.raises(ValueError, match=message):
        sic().fit(rows, y)


def test_sparse_rows_are_refused_with_the_remedy():
    with pytest.raises(TypeError, match=r"Sparse X .*toarray"):
        sic().fit(sp.csr_array(X), Y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"lam": -1.0}, ValueError, "lam=-1.0"),
        ({"lam": 0}, ValueError, "lam=0"),
        ({"lam": "best"}, ValueError, "lam='best'"),
        ({"lam": None}, TypeError, "lam must be a finite number"),
        ({"rho": -0.1}, ValueError, "rho=-0.1"),
        ({"tau": 0.0}, ValueError, "tau=0.0"),
        ({"tau": np.nan}, TypeError, "tau"),
        ({"epsilon": 0.0}, ValueError, "epsilon=0.0"),
        ({"epsilon": []}, ValueError, "epsilon="),
        ({"epsilon": [1e-8, 1e-2]}, ValueError, "decreasing"),
        ({"tol": -1.0}, ValueError, "tol=-1.0"),
        ({"max_iter": 0}, ValueError, "max_iter=0"),
        ({"max_iter": 1.5}, TypeError, "max_iter"),
        ({"n_components": 0}, ValueError, "n_components=0"),
        ({"rounds": "many"}, TypeError, "rounds"),
        ({"solver": "newton"}, ValueError, 'solver=.newton.*"alternating", "bcd"'),
        ({"measure": "uniform"}, ValueError, "measure='uniform'"),
        ({"feature_map": "spline"}, ValueError, "feature_map='spline'"),
        ({"feature_map": 3}, TypeError, "feature_map must be a name or an object"),
        ({"target": "count"}, ValueError, "target='count'"),
        ({"target": TargetEncoder(basis="spline")}, ValueError, "basis='spline'"),
        ({"target": TargetEncoder(basis="polynomial", degree=99)}, ValueError, "degree=99"),
        ({"feature_groups": [[0, 99]]}, ValueError, "column 99"),
        ({"feature_groups": [0, 1]}, TypeError, "group 'group0'"),
        ({"target": TargetEncoder(select=True), "measure": "joint"}, ValueError, "select=True"),
        ({"n_features_to_select": 99}, ValueError, "n_features_to_select=99"),
        ({"n_features_to_select": 3, "threshold": 0.1}, ValueError, "not both"),
        ({"cv": 1, "lam": "auto"}, ValueError, "cv=1"),
        ({"cv": "five", "lam": "auto"}, TypeError, "cv must be"),
        ({"random_state": "seed"}, TypeError, "random_state must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        sic(**parameters).fit(X, Y)


def test_before_fit_there_is_nothing_to_ask():
    for ask in (lambda s: s.witness(X, Y), lambda s: s.transform(X), lambda s: s.score(X, Y)):
        with pytest.raises(NotFittedError):
            ask(sic())


def test_new_rows_are_checked():
    fitted = sic().fit(pd.DataFrame(X, columns=NAMES), LABELS)
    with pytest.raises(ValueError, match="8 features"), pytest.warns(UserWarning, match="names"):
        fitted.witness(X[:, :3], LABELS)
    with pytest.raises(ValueError, match="120 rows but y has 3"):
        fitted.witness(pd.DataFrame(X, columns=NAMES), LABELS[:3])
    with pytest.raises(ValueError, match=r"NaN .*'gene2'"):
        fitted.risk(changed(np.nan), LABELS)
    with pytest.raises(ValueError, match="label 'huge'"):
        fitted.risk(pd.DataFrame(X, columns=NAMES), ["huge"] * N)
    with pytest.raises(ValueError, match="feature names"):
        fitted.witness(pd.DataFrame(X, columns=NAMES[::-1]), LABELS)


def test_too_few_iterations_are_reported():
    with pytest.warns(ConvergenceWarning, match="max_iter=2 iterations"):
        sic(max_iter=2, tol=1e-9, rounds=1).fit(X, Y)


# Kinds of input


def test_names_of_a_pandas_frame_are_kept():
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(N) + 1000)
    fitted = sic(n_features_to_select=3).fit(frame, pd.Series(Y, index=frame.index))
    assert fitted.feature_names_in_.tolist() == NAMES
    best = [NAMES[j] for j in np.sort(np.argsort(-fitted.feature_importances_)[:3])]
    assert fitted.get_feature_names_out().tolist() == best
    table = fitted.set_output(transform="pandas").transform(frame)
    pd.testing.assert_frame_equal(table, frame[best])
    np.testing.assert_allclose(fitted.feature_importances_, importances(X, Y), atol=1e-10)


def test_polars_frames_are_accepted():
    frame = pl.DataFrame(X, schema=NAMES)
    fitted = sic(n_features_to_select=3).fit(frame, pl.Series(Y))
    np.testing.assert_allclose(fitted.feature_importances_, importances(X, Y), atol=1e-10)
    names = fitted.get_feature_names_out().tolist()
    table = fitted.set_output(transform="polars").transform(frame)
    assert table.columns == names
    np.testing.assert_array_equal(table.to_numpy(), X[:, fitted.support_])
    expected = sic().fit(X, Y).witness(X, Y)
    np.testing.assert_allclose(fitted.witness(frame, pl.Series(Y)), expected, atol=1e-8)


def test_tables_of_responses_may_mix_numbers_and_labels():
    pandas = pd.DataFrame({"dose": Y, "outcome": LABELS})
    polars = pl.DataFrame({"dose": Y, "outcome": LABELS.tolist()})
    first, second = sic().fit(X, pandas), sic().fit(X, polars)
    np.testing.assert_allclose(first.feature_importances_, second.feature_importances_, atol=1e-12)
    np.testing.assert_allclose(first.witness(X, pandas), second.witness(X, polars), atol=1e-9)


def test_arrays_have_generic_names():
    fitted = sic(n_features_to_select=2).fit(X, Y)
    chosen = np.flatnonzero(fitted.support_)
    assert fitted.get_feature_names_out().tolist() == [f"x{j}" for j in chosen]
    np.testing.assert_array_equal(fitted.transform(X), X[:, chosen])


def test_float32_is_nearly_float64_and_stays_float32():
    fitted = sic().fit(X.astype(np.float32), Y.astype(np.float32))
    np.testing.assert_allclose(fitted.feature_importances_, importances(X, Y), atol=1e-3)
    assert fitted.transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, bool, object])
def test_integer_and_bool_columns_are_numbers(dtype):
    rows = (np.median(X, axis=0) < X).astype(dtype)
    expected = importances(rows.astype(float), Y)
    np.testing.assert_allclose(importances(rows, Y), expected, atol=1e-12)


def test_bool_and_integer_columns_of_a_frame():
    frame = pd.DataFrame(X, columns=NAMES)
    frame["gene0"] = frame["gene0"] > 0.5
    frame["gene1"] = (10 * frame["gene1"]).round().astype("Int64")
    expected = importances(frame.to_numpy(dtype=float), Y)
    np.testing.assert_allclose(importances(frame, Y), expected, atol=1e-12)


def test_fit_leaves_its_arguments_alone():
    rows, y, w = X.copy(), Y.copy(), np.ones(N)
    sic(lam="auto").fit(rows, y, w)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(w, 1.0)


@pytest.mark.parametrize("feature_map", MAPS)
def test_four_rows_are_enough_to_run(feature_map):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        eta = importances(X[:4], Y[:4], feature_map=feature_map, lam="auto")
    assert eta.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("feature_map", ["landmark", "linear"])
def test_more_columns_than_rows(feature_map):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 150))
    eta = importances(rows, rows[:, 17] + 0.1 * rng.standard_normal(40), feature_map=feature_map)
    assert eta.argmax() == 17


# Randomness


def test_global_generator_is_untouched():
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    for options in ({}, {"feature_map": "fourier"}, {"measure": "permuted"}):
        sic(random_state=None, lam="auto", **options).fit(X, Y)
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]


RANDOM = [{"feature_map": "fourier"}, {"measure": "permuted"}, {"n_components": 20}]


@pytest.mark.parametrize("options", RANDOM, ids=["fourier", "permuted", "subset"])
def test_random_fits_repeat_with_a_seed_and_differ_without(options):
    first = importances(X, Y, random_state=3, **options)
    np.testing.assert_array_equal(importances(X, Y, random_state=3, **options), first)
    generator = np.random.default_rng(3)
    np.testing.assert_array_equal(importances(X, Y, random_state=generator, **options), first)
    assert np.abs(importances(X, Y, random_state=4, **options) - first).max() > 1e-6
    fresh = [importances(X, Y, random_state=None, **options) for _ in range(2)]
    assert np.abs(fresh[0] - fresh[1]).max() > 1e-6


@pytest.mark.parametrize("feature_map", ["landmark", "linear", "polynomial"])
def test_maps_without_chance_do_not_depend_on_the_seed(feature_map):
    options = {"feature_map": feature_map, "lam": "auto", "n_components": None}
    first = importances(X, Y, random_state=0, **options)
    for seed in (1, None, np.random.RandomState(5)):
        np.testing.assert_array_equal(importances(X, Y, random_state=seed, **options), first)


def test_seed_does_not_matter_when_the_folds_draw_landmarks():
    data = make_sinexp(340, 6, random_state=0)
    first, second = (ConvexSIC(random_state=seed).fit(data.data, data.target) for seed in (0, 1))
    np.testing.assert_array_equal(first.lam_risks_, second.lam_risks_)
    np.testing.assert_array_equal(first.feature_importances_, second.feature_importances_)


@pytest.mark.parametrize("feature_map", MAPS)
def test_number_of_threads_does_not_matter(feature_map):
    options = {"feature_map": feature_map, "lam": "auto"}
    one = sic(n_jobs=1, **options).fit(X, Y)
    two = sic(n_jobs=2, **options).fit(X, Y)
    np.testing.assert_array_equal(one.feature_importances_, two.feature_importances_)
    np.testing.assert_array_equal(one.lam_risks_, two.lam_risks_)


# lam by cross-validation


def test_lam_comes_from_the_path():
    fitted = sic(lam="auto", cv=3).fit(X, Y)
    assert fitted.lam_ in LAMS
    np.testing.assert_array_equal(fitted.lam_path_, LAMS)
    assert fitted.lam_risks_.shape == (3, len(LAMS))
    fixed = sic(lam=fitted.lam_).fit(X, Y)
    np.testing.assert_array_equal(fixed.feature_importances_, fitted.feature_importances_)
    assert fixed.lam_risks_ is None


def test_relaxed_lam_is_judged_by_refits():
    data = make_sinexp(300, 20, random_state=1)
    plain = sic(lam="auto", n_components=None).fit(data.data, data.target)
    relaxed = sic(lam="relaxed", n_components=None).fit(data.data, data.target)
    assert relaxed.lam_ >= plain.lam_
    # Large lams shrink the critic; refitted they predict far better.
    assert np.all(relaxed.lam_risks_.mean(axis=0)[:2] > plain.lam_risks_.mean(axis=0)[:2] + 0.01)
    fixed = sic(lam=relaxed.lam_, n_components=None).fit(data.data, data.target)
    np.testing.assert_array_equal(fixed.feature_importances_, relaxed.feature_importances_)


def test_splitters_and_splits_are_the_same():
    splitter = KFold(3, shuffle=True, random_state=0)
    first = sic(lam="auto", cv=splitter).fit(X, Y)
    second = sic(lam="auto", cv=list(splitter.split(X))).fit(X, Y)
    np.testing.assert_array_equal(first.lam_risks_, second.lam_risks_)
    assert first.lam_risks_.shape == (3, len(LAMS))


def test_splits_count_rows_of_no_weight():
    """Folds are given for the rows of X; those without weight drop out of them."""
    splits = [(np.arange(60, N), np.arange(60)), (np.arange(60), np.arange(60, N))]
    w = np.ones(N)
    w[10:30] = 0
    weighted = sic(lam="auto", cv=splits, feature_map="linear").fit(X, Y, w)
    kept = w > 0
    short = [(None, np.arange(40)), (None, np.arange(40, 100))]
    direct = sic(lam="auto", cv=short, feature_map="linear").fit(X[kept], Y[kept])
    np.testing.assert_allclose(weighted.lam_risks_, direct.lam_risks_, rtol=1e-9)


def test_splitters_that_need_groups_can_be_given_as_splits():
    groups = np.arange(N) // 30
    fitted = sic(lam="auto", cv=GroupKFold(4).split(X, Y, groups)).fit(X, Y)
    assert fitted.lam_risks_.shape[0] == 4


# Groups


def test_singleton_groups_change_nothing():
    fitted = sic(feature_groups=[[j] for j in range(D)]).fit(X, Y)
    np.testing.assert_allclose(fitted.feature_importances_, importances(X, Y), atol=1e-8)
    np.testing.assert_allclose(fitted.group_importances_, fitted.feature_importances_, rtol=1e-9)


GROUPS = {"disjoint": {"a": [0, 1], "b": [2, 3, 4]}, "overlapping": {"a": [0, 1, 2], "b": [2, 3]}}


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("feature_map", MAPS)
def test_groups_by_position_and_by_name(groups, feature_map):
    frame = pd.DataFrame(X, columns=NAMES)
    by_name = {name: [NAMES[j] for j in columns] for name, columns in groups.items()}
    first = sic(feature_groups=groups, feature_map=feature_map).fit(frame, Y)
    second = sic(feature_groups=by_name, feature_map=feature_map).fit(frame, Y)
    np.testing.assert_array_equal(first.feature_importances_, second.feature_importances_)
    alone = [NAMES[j] for j in range(D) if not any(j in g for g in groups.values())]
    assert first.group_names_ == second.group_names_ == ["a", "b", *alone]
    assert first.group_importances_.sum() == pytest.approx(1.0)
    assert first.feature_importances_.sum() == pytest.approx(1.0)
    assert first.sic_ == pytest.approx(first.decomposition_.sic, rel=1e-8)
    if groups is GROUPS["disjoint"]:
        shares = [first.feature_importances_[c].sum() for c in groups.values()]
        np.testing.assert_allclose(shares, first.group_importances_[:2], rtol=1e-9)


def test_one_group_of_everything_has_all_the_importance():
    fitted = sic(feature_groups=[list(range(D))]).fit(X, Y)
    np.testing.assert_allclose(fitted.group_importances_, [1.0])
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)


def test_a_group_of_noise_has_little_importance():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 9))
    y = rows[:, 0] * rows[:, 1] + rows[:, 2]
    fitted = sic(feature_groups={"signal": [0, 1, 2], "noise": [3, 4, 5], "more": [6, 7, 8]}).fit(
        rows, y
    )
    assert fitted.group_importances_[0] > 0.9


# Feature selection on y too


def test_an_irrelevant_response_weighs_little():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 4))
    y = np.column_stack([rows[:, 0] + rows[:, 1], rng.standard_normal(300), np.sin(2 * rows[:, 0])])
    fitted = sic(target=TargetEncoder(select=True), lam=0.1, n_components=100).fit(rows, y)
    zeta = fitted.target_importances_
    assert zeta.sum() == pytest.approx(1.0)
    assert zeta[1] < 0.1 < 0.3 < zeta[[0, 2]].min()
    assert fitted.sic_ == pytest.approx(fitted.decomposition_.sic, rel=1e-8)
    assert fitted.decomposition_.per_target.shape == (3,)


def test_importances_of_responses_follow_their_columns():
    y = np.column_stack([Y, X[:, 0], X[:, 1] + Y])
    first = sic(target=TargetEncoder(select=True), tol=1e-7).fit(X, y)
    second = sic(target=TargetEncoder(select=True), tol=1e-7).fit(X, 1e3 * y[:, ::-1])
    np.testing.assert_allclose(
        second.target_importances_, first.target_importances_[::-1], atol=1e-5
    )


def test_labels_cannot_be_weighed():
    with pytest.raises(ValueError, match="needs numeric responses"):
        sic(target=TargetEncoder(select=True)).fit(X, LABELS)


# Finding features


def test_sinexp_features_come_out_on_top():
    data = make_sinexp(400, 20, shuffle_features=True, random_state=1)
    fitted = ConvexSIC(n_features_to_select=6).fit(data.data, data.target)
    np.testing.assert_array_equal(fitted.support_, data.support)


@pytest.mark.parametrize("measure", ["mixture", "joint"])
@pytest.mark.parametrize("y", ["numbers", "labels"])
def test_other_measures_find_the_features(measure, y):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((250, 8))
    score = rows[:, 2] + np.sin(2 * rows[:, 5])
    target = score if y == "numbers" else np.digitize(score, [-0.5, 0.5]).astype(str)
    eta = importances(rows, target, measure=measure)
    assert set(np.argsort(-eta)[:2]) == {2, 5}


@pytest.mark.parametrize("classes", [2, 5])
def test_labels_as_text_recover_the_features(classes):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 10))
    score = rows[:, 3] ** 2 + rows[:, 7]
    cuts = np.quantile(score, np.arange(1, classes) / classes)
    y = np.array([f"class {c}" for c in "abcde"])[np.digitize(score, cuts)]
    fitted = ConvexSIC().fit(rows, y)
    assert fitted.classes_.tolist() == [f"class {c}" for c in "abcde"[:classes]]
    assert set(np.argsort(-fitted.feature_importances_)[:2]) == {3, 7}
    assert fitted.score(rows, y) > 0


def test_polynomial_map_sees_what_the_linear_map_cannot():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 6))
    y = rows[:, 1] * rows[:, 4] + 0.1 * rng.standard_normal(300)
    polynomial = sic(feature_map="polynomial").fit(rows, y)
    assert set(np.argsort(-polynomial.feature_importances_)[:2]) == {1, 4}
    assert polynomial.score(rows, y) > 0.4
    assert sic(feature_map="linear").fit(rows, y).score(rows, y) < 0.05


class Sines:
    """A user's map with a fitted scale."""

    def fit(self, X):
        self.scale = 1.5 * np.ones(X.shape[1])

    def values(self, X):
        return np.hstack([np.sin(self.scale * X), np.cos(self.scale * X)])

    def derivative(self, X, j):
        out = np.zeros((X.shape[0], 2 * X.shape[1]))
        out[:, j] = self.scale[j] * np.cos(self.scale[j] * X[:, j])
        out[:, X.shape[1] + j] = -self.scale[j] * np.sin(self.scale[j] * X[:, j])
        return out


@pytest.mark.parametrize("lam", [0.03, "auto"])
def test_own_map_works_end_to_end(lam):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 5))
    own = Sines()
    fitted = sic(feature_map=own, lam=lam, n_jobs=2).fit(rows, np.cos(1.5 * rows[:, 2]))
    assert fitted.feature_importances_.argmax() == 2
    assert fitted.feature_importances_[2] > 0.95
    assert not hasattr(own, "scale")  # the parameter is left as it was given
    assert clone(fitted).fit(rows, rows[:, 0]).feature_importances_.argmax() == 0


def test_map_objects_carry_their_settings():
    wide, narrow = (
        sic(feature_map=LandmarkMap(bandwidth=b, kernel="cauchy")).fit(X, Y) for b in (5.0, 0.1)
    )
    assert wide.critic_.bound.g.max() < narrow.critic_.bound.g.max()


# The scikit-learn contract beyond its own checks


@pytest.mark.parametrize("options", [{}, {"feature_map": "fourier"}, {"measure": "joint"}])
def test_pickle_keeps_the_critic(options):
    fitted = sic(**options).fit(X, LABELS)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.witness(X, LABELS), fitted.witness(X, LABELS))
    np.testing.assert_array_equal(copy.support_, fitted.support_)


def test_clone_refits_to_the_same_critic():
    fitted = sic(feature_map="fourier").fit(X, Y)
    again = clone(fitted).fit(X, Y)
    np.testing.assert_array_equal(again.witness(X, Y), fitted.witness(X, Y))


def test_refitting_forgets_the_fit_before():
    fitted = sic(feature_groups=[[0, 1]]).fit(X, LABELS)
    assert hasattr(fitted, "classes_")
    assert hasattr(fitted, "group_importances_")
    fitted.set_params(feature_groups=None).fit(X, Y)
    assert not hasattr(fitted, "classes_")
    assert not hasattr(fitted, "group_importances_")
    np.testing.assert_array_equal(fitted.feature_importances_, importances(X, Y))


def test_works_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), sic(n_features_to_select=3)).fit(X, Y)
    assert pipeline.transform(X).shape == (N, 3)
    np.testing.assert_allclose(pipeline[-1].feature_importances_, importances(X, Y), atol=1e-8)


@pytest.mark.parametrize("feature_map", MAPS)
def test_warm_start_takes_fewer_iterations_to_the_same_point(feature_map):
    options = {"feature_map": feature_map, "tol": 1e-6, "max_iter": 2000}
    fitted = sic(warm_start=True, **options).fit(X, Y)
    first = (fitted.n_rounds_, fitted.n_iter_, fitted.feature_importances_)
    fitted.fit(X, Y)
    assert fitted.n_rounds_ <= first[0]
    assert fitted.n_iter_ < first[1]
    np.testing.assert_allclose(fitted.feature_importances_, first[2], atol=1e-4)


@pytest.mark.parametrize("feature_map", ["landmark", "linear"])
def test_warm_start_lets_features_come_back(feature_map):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((150, 6))
    options = {"feature_map": feature_map, "tol": 1e-6, "max_iter": 2000}
    fitted = sic(warm_start=True, **options).fit(rows, rows[:, 0])
    assert fitted.feature_importances_[3] < 0.01
    fitted.fit(rows, rows[:, 3])
    assert fitted.feature_importances_[3] > 0.95
    fitted.fit(rows[:, :4], rows[:, 3])  # other columns: a cold start
    assert fitted.feature_importances_[3] > 0.95


def test_progress_goes_to_standard_error(capsys):
    sic(verbose=0).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    sic(verbose=1, lam="auto").fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "fitting at lam" in err
    sic(verbose=2, rounds=1).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "round 1, iteration 0, SIC" in err


def test_a_fitted_fourier_critic_does_not_keep_the_rows():
    rng = np.random.default_rng(0)
    sizes = []
    for n in (300, 3000):
        rows, response = rng.normal(size=(n, 5)), rng.normal(size=n)
        fitted = sic(feature_map="fourier", n_components=32, rounds=1).fit(rows, response)
        sizes.append(len(pickle.dumps(fitted)))
    assert sizes[1] < 1.05 * sizes[0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_binary_columns_keep_their_importance(share, seed):
    """A critic that steps between two values, flat at both, must not escape the penalty."""
    rng = np.random.default_rng(seed)
    columns = (rng.random((250, 80)) < share).astype(float)
    response = 2 * columns[:, 5] - columns[:, 40] + 0.5 * rng.normal(size=250)
    fitted = ConvexSIC(lam=0.03).fit(columns, response)
    order = np.argsort(-fitted.feature_importances_)
    assert order[:2].tolist() == [5, 40]
    assert fitted.feature_importances_[40] > 2 * fitted.feature_importances_[order[2]]
    assert fitted.n_rounds_ < 10  # the metric settles


@pytest.mark.parametrize("distinct", [2, 3])
def test_two_or_three_distinct_rows_fit_at_the_reference_lam(distinct):
    rows = np.repeat(np.array([[0.0, 1], [1, 0], [1, 1]])[:distinct], 10, axis=0)
    fitted = ConvexSIC().fit(rows, np.repeat([0.0, 1, 3][:distinct], 10))
    assert fitted.lam_ == 0.03
    assert fitted.feature_importances_.sum() == pytest.approx(1)
