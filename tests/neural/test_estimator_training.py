"""NeuralSIC: Boosted SIC, Algorithm 3 as in the paper, the course of training, lam, randomness."""

import pickle
import random
import warnings
from dataclasses import fields

import numpy as np
import pytest
import torch
from sklearn.model_selection import KFold
from torch import nn

from sobolev import NeuralSIC
from sobolev.exceptions import DivergenceError
from sobolev.neural import (
    BigCritic,
    BilinearCritic,
    Boosting,
    EarlyStopping,
    Optimizer,
    SmallCritic,
    _base,
)
from sobolev.neural.objectives import PairedSIC

N, D = 120, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X[:, 1] + np.sin(2 * X[:, 4]) + 0.1 * RNG.standard_normal(N)
LABELS = np.array(["high", "low", "mid"])[np.digitize(Y, [-0.8, 0.4])]


class Module(nn.Module):
    """A user's critic, with dropout from torch's global generator."""

    def __init__(self, n_features, n_targets, dropout=0.2):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features + n_targets, 40), nn.ReLU(), nn.Dropout(dropout), nn.Linear(40, 1)
        )

    def forward(self, x, y):
        return self.layers(torch.cat([x, y], dim=1))


CRITICS = {
    "bilinear": BilinearCritic(widths=(30, 30)),
    "small": SmallCritic(widths=(30, 30)),
    "big": BigCritic((30,), (10,), (30,)),
    "bilinear with layers of y": BilinearCritic(widths=(30, 30), target_widths=(20,)),
    "module": Module,
    "list": [BilinearCritic(widths=(30,)), SmallCritic(widths=(30,))],
}

FIELDS = {field.name for field in fields(Optimizer)}


def sic(**parameters):
    """An estimator that is trained in a few hundredths of a second."""
    parameters = {"max_iter": 40, "rounds": 1, "random_state": 0} | parameters
    training = {name: parameters.pop(name) for name in FIELDS & parameters.keys()}
    return NeuralSIC(optimizer=Optimizer(**training), **parameters)


def importances(*data, sample_weight=None, **parameters):
    return sic(**parameters).fit(*data, sample_weight).feature_importances_


# Boosted SIC


@pytest.mark.parametrize("aggregate", ["arithmetic", "geometric"])
def test_boosted_importances_are_a_mean_over_members(aggregate):
    options = {
        "boosting": Boosting(2, aggregate),
        "batch_size": [30, 60],
        "critic": ["bilinear", "small"],
    }
    fitted = sic(**options).fit(X, Y)
    members = fitted.member_importances_
    assert members.shape == (8, D)
    np.testing.assert_allclose(members.sum(axis=1), 1.0)
    assert len(np.unique(members.round(6), axis=0)) == 8
    mean = members.mean(axis=0) if aggregate == "arithmetic" else members.prod(axis=0) ** (1 / 8)
    np.testing.assert_allclose(fitted.feature_importances_, mean / mean.sum(), rtol=1e-9)


@pytest.mark.parametrize("critic", ["bilinear", "small", Module], ids=["bilinear", "small", "mod"])
def test_members_do_not_depend_on_each_other(critic):
    alone = sic(critic=critic).fit(X, Y).member_importances_
    three = sic(critic=critic, boosting=3).fit(X, Y)
    np.testing.assert_allclose(three.member_importances_[:1], alone, atol=1e-6)
    assert three.objective_curve_.shape == (40,)


def test_witness_and_risk_are_of_the_mean_critic():
    both = sic(critic=["bilinear", "small"], boosting=2).fit(X, Y)
    networks = both._ensembles
    both._ensembles = networks[:1]
    first = both.witness(X, Y)
    both._ensembles = networks[1:]
    second = both.witness(X, Y)
    both._ensembles = networks
    np.testing.assert_allclose(both.witness(X, Y), (first + second) / 2, atol=1e-6)


# Algorithm 3 with the settings of the paper


class Stop(Exception):
    """Raised instead of training."""


@pytest.fixture
def planned(monkeypatch):
    """What reaches training, for an estimator that is then not trained."""

    def plan(estimator):
        seen = {}

        def spy(sample, members, recipe, *rest, **options):
            seen.update(members=members, recipe=recipe)
            raise Stop

        monkeypatch.setattr(_base, "fit_members", spy)
        with pytest.raises(Stop):
            estimator.fit(X, Y)
        return seen["members"], seen["recipe"]

    return plan


def test_the_classmethod_has_the_settings_of_the_paper(planned):
    members, recipe = planned(NeuralSIC.paper())
    (member,) = members
    assert (member.batch_size, member.lam) == (100, 0.01)
    assert isinstance(member.design.spec, SmallCritic)
    assert member.design.objective == PairedSIC(rho=1.0, joint=0.0)
    network = member.design.build([np.random.default_rng(0)], D, 1)
    assert [tuple(p.shape) for p in network.parameters] == [
        *((1, D, 100), (1, 1, 100), (1, 100, 100), (1, 100, 1))  # no biases
    ]
    assert network.dropouts == [(True, 100, 0.3)] * 2
    assert network.hidden.slope == 0
    optimizer = recipe.optimizer
    assert (optimizer.max_iter, optimizer.rounds) == (4000, 1)
    assert (optimizer.learning_rate, optimizer.betas) == (1e-3, (0.5, 0.999))
    assert (optimizer.weight_decay, optimizer.schedule) == (1e-4, "constant")
    assert optimizer.eta_step == 0.1
    # The mirror rule: the gradient of the minibatch in its own units, the last eta is the result.
    assert optimizer.eta_rule == "mirror"


def test_what_is_passed_wins_over_the_paper_even_if_it_is_a_default(planned):
    changed = {"max_iter": 1000, "batch_size": [7], "betas": (0.9, 0.99)}
    estimator = NeuralSIC.paper(
        lam=0.3, critic="big", rho=2.0, optimizer=Optimizer.paper(**changed), boosting=1
    )
    before = estimator.get_params()
    (member,), recipe = planned(estimator)
    assert (recipe.optimizer.max_iter, member.lam, member.batch_size) == (1000, 0.3, 7)
    assert isinstance(member.design.spec, BigCritic)
    assert member.design.objective.rho == 2.0
    assert recipe.optimizer.betas == (0.9, 0.99)
    assert recipe.optimizer.epsilon == 1e-6  # of the paper
    assert estimator.get_params() == before
    _, recipe = planned(NeuralSIC.paper(optimizer=Optimizer()))
    assert recipe.optimizer == Optimizer()


def test_the_settings_of_the_paper_fit():
    fitted = NeuralSIC.paper(optimizer=Optimizer.paper(max_iter=60), random_state=0).fit(X, Y)
    assert fitted.n_iter_ == 60
    assert fitted.feature_importances_.sum() == pytest.approx(1)


# The course of training


@pytest.mark.parametrize("critic", ["bilinear", "small", Module], ids=["bilinear", "small", "mod"])
def test_early_stopping_ends_where_held_out_rows_no_longer_gain(critic):
    noise = np.random.default_rng(0).standard_normal(N)
    options = {"critic": critic, "early_stopping": EarlyStopping(patience=2), "max_iter": 400}
    fitted = sic(**options).fit(X, noise)
    curve = fitted.validation_curve_
    assert fitted.n_iter_ < 400
    assert fitted.objective_curve_.shape == (fitted.n_iter_,)
    assert curve.shape == (fitted.n_iter_ // 10, 1)
    assert curve.argmax() == curve.size - 3  # two looks without progress
    assert sic(critic=critic).fit(X, noise).validation_curve_ is None


def test_early_stopping_keeps_the_best_iterate():
    """A fit of just so many updates, the looks being at the same ones."""
    noise = np.random.default_rng(0).standard_normal(N)
    options = {"early_stopping": EarlyStopping(patience=10**6), "learning_rate": 5e-3}
    long = sic(max_iter=80, **options).fit(X, noise)
    best = 2 * (1 + int(long.validation_curve_.argmax()))
    assert best < 80
    short = sic(max_iter=best, **options).fit(X, noise)
    np.testing.assert_allclose(long.witness(X, noise), short.witness(X, noise), atol=1e-6)


def test_members_hold_out_rows_of_their_own(planned):
    members, recipe = planned(
        NeuralSIC(
            optimizer=Optimizer(early_stopping=EarlyStopping(validation_fraction=0.25)), boosting=6
        )
    )
    held_out = [member.held_out for member in members]
    np.testing.assert_array_equal(np.sort(np.concatenate(held_out[:4])), np.arange(N))
    np.testing.assert_array_equal(held_out[4], held_out[0])  # dealt in turn
    for member in members:
        both = np.concatenate([member.train, member.held_out])
        np.testing.assert_array_equal(np.sort(both), np.arange(N))
    assert (recipe.every, recipe.patience) == (25, 10)


@pytest.mark.parametrize(
    ("options", "n_members"),
    [
        ({"boosting": 3}, 3),
        ({"boosting": 9}, 9),
        ({"critic": [SmallCritic(widths=(10,)), BilinearCritic(widths=(10,))]}, 2),
    ],
    ids=["three", "two chunks", "two critics"],
)
def test_the_validation_curve_has_a_column_for_each_member(options, n_members):
    fitted = sic(early_stopping=EarlyStopping(patience=100), **options).fit(X, Y)
    assert fitted.member_importances_.shape == (n_members, D)
    assert fitted.validation_curve_.shape == (40, n_members)


@pytest.mark.parametrize("kind", ["early stopping", "lam"])
def test_held_out_rows_count_by_their_weight(kind):
    """Rows of next to no weight may be as far off as they like."""
    rows, y = np.vstack([X, 1e3 * X[:4]]), np.concatenate([Y, Y[:4]])
    w = np.concatenate([np.ones(N), np.full(4, 1e-12)])
    options = (
        {"early_stopping": EarlyStopping()}
        if kind == "early stopping"
        else {"lam": "auto", "cv": 2}
    )
    fitted = sic(max_iter=20, **options).fit(rows, y, w)
    found = fitted.validation_curve_ if kind == "early stopping" else fitted.lam_risks_
    assert np.abs(found).max() < 10


def test_schedules_differ_from_the_second_update_on():
    curves = {
        s: sic(schedule=s, max_iter=10).fit(X, Y).objective_curve_
        for s in ("constant", "linear", "cosine")
    }
    for name in ("linear", "cosine"):
        np.testing.assert_allclose(curves[name][:2], curves["constant"][:2], atol=1e-7)
        assert np.abs(curves[name] - curves["constant"])[3:].max() > 1e-5
    assert np.abs(curves["linear"] - curves["cosine"]).max() > 1e-5


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_warm_start_goes_on_from_the_last_critics(critic):
    fitted = sic(critic=critic, warm_start=True, max_iter=60, rounds=2).fit(X, Y)
    first = fitted.objective_curve_
    fitted.fit(X, Y)
    again = fitted.objective_curve_
    start, end = first[:10].mean(), first[-20:].mean()
    assert again[:20].mean() < 0.5 * (start + end)
    assert again.mean() < first.mean()


@pytest.mark.parametrize("change", ["columns", "responses", "critic", "members"])
def test_warm_start_of_another_shape_starts_afresh(change):
    fitted = sic(warm_start=True).fit(X, Y)
    rows, y, options = X, Y, {}
    if change == "columns":
        rows = X[:, :5]
    elif change == "responses":
        y = LABELS
    elif change == "critic":
        options = {"critic": "small"}
    else:
        options = {"boosting": 2}
    fitted.set_params(**options).fit(rows, y)
    np.testing.assert_array_equal(fitted.feature_importances_, importances(rows, y, **options))


def test_a_learning_rate_without_measure_is_a_divergence():
    with pytest.raises(DivergenceError, match=r"not finite after \d+ updates; lower learning_rate"):
        sic(learning_rate=1e6).fit(X, Y)


def test_progress_goes_to_standard_error(capsys):
    sic().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    for verbose in (1, 2):
        sic(verbose=verbose, rounds=2).fit(X, Y)
        out, err = capsys.readouterr()
        assert out == ""
        assert "round 2, update 40, SIC" in err
    assert "round 1, update 10, SIC" in err  # a line for every report


# lam by cross-validation


@pytest.mark.parametrize("critic", ["bilinear", "small", Module], ids=["bilinear", "small", "mod"])
def test_lam_comes_from_the_path(critic):
    options = {"critic": critic, "max_iter": 20}
    fitted = sic(lam="auto", cv=3, **options).fit(X, Y)
    assert fitted.lam_ in fitted.lam_path_
    assert fitted.lam_risks_.shape == (3, fitted.lam_path_.size)
    assert np.all(np.diff(fitted.lam_path_) < 0)
    assert 0.01 in fitted.lam_path_
    fixed = sic(lam=0.02, **options).fit(X, Y)
    assert (fixed.lam_, fixed.lam_path_, fixed.lam_risks_) == (0.02, None, None)


def test_splitters_and_splits_are_the_same():
    splitter = KFold(3, shuffle=True, random_state=0)
    first = sic(lam="auto", cv=splitter, max_iter=20).fit(X, Y)
    second = sic(lam="auto", cv=list(splitter.split(X)), max_iter=20).fit(X, Y)
    np.testing.assert_array_equal(first.lam_risks_, second.lam_risks_)
    assert first.lam_risks_.shape[0] == 3


def test_a_penalty_that_ruins_the_critic_is_not_chosen():
    fitted = sic(lam="auto", max_iter=200, learning_rate=5e-3, cv=3).fit(X, Y)
    mean = fitted.lam_risks_.mean(axis=0)
    assert mean[0] < mean.max()  # 0.1 is too much here
    assert fitted.lam_ < 0.1


# Randomness


def states():
    return (
        pickle.dumps(np.random.get_state()),  # noqa: NPY002
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_global_generators_are_untouched(critic, n_jobs):
    np.random.seed(7)  # noqa: NPY002
    torch.manual_seed(7)
    random.seed(7)
    before = states()
    options = {"rounds": 2, "boosting": 3, "early_stopping": EarlyStopping(), "n_jobs": n_jobs}
    fitted = sic(critic=critic, random_state=None, **options).fit(X, Y)
    fitted.score(X, Y)
    assert states() == before


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_fits_repeat_with_a_seed_and_differ_without(critic):
    options = {"critic": critic, "rounds": 2, "max_iter": 20}
    first = importances(X, Y, **options)
    np.testing.assert_array_equal(importances(X, Y, **options), first)
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(importances(X, Y, random_state=generator, **options), first)
    assert np.abs(importances(X, Y, random_state=generator, **options) - first).max() > 1e-6
    fresh = [importances(X, Y, random_state=None, **options) for _ in range(2)]
    assert np.abs(fresh[0] - fresh[1]).max() > 1e-6


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_threads_of_torch_do_not_matter(critic):
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(importances(X, Y, critic=critic, rounds=2))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_number_of_jobs_does_not_matter(critic):
    options = {"critic": critic, "boosting": 3 if critic is Module else 9, "rounds": 2}
    one, two = (sic(n_jobs=n, **options).fit(X, Y) for n in (1, 2))
    np.testing.assert_array_equal(one.member_importances_, two.member_importances_)
    np.testing.assert_array_equal(one.witness(X, Y), two.witness(X, Y))


def test_modules_are_trained_without_warnings():
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sic(critic=Module, rounds=2, max_iter=4).fit(X, Y).score(X, Y)
    finally:
        torch.set_warn_always(False)
