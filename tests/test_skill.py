"""Held-out skill: what it is on known cases, and that noise has none."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LassoCV
from sklearn.metrics import r2_score, roc_auc_score

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, NeuralSIC
from sobolev.critic import as_critic
from sobolev.neural import Optimizer
from sobolev.responses import read_response, survival_scores
from sobolev.skill import (
    Skill,
    area_under_curve,
    concordant_pairs,
    cross_validated_skill,
    held_out_skill,
)
from sobolev.summary import headline


def table(n=240, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, 2 * X[:, 0] + rng.standard_normal(n)


def halves(n):
    return np.arange(n // 2), np.arange(n // 2, n)


def test_r_squared_is_that_of_the_predictions():
    X, y = table()
    train, rows = halves(len(y))
    for critic in (ConvexSIC(lam=0.02), LassoCV()):
        fitted = critic.fit(X[train], y[train])
        found = held_out_skill([[(as_critic(fitted), train, rows)]], X, y, read_response(y))
        if isinstance(critic, ConvexSIC):  # f = h(x)' psi(y), and h predicts psi
            center, scale = y[train].mean(), y[train].std()
            high, low = (np.full(rows.size, center + k * scale) for k in (1.0, 0.0))
            h = fitted.witness(X[rows], high) - fitted.witness(X[rows], low)
            predicted = center + scale * h
        else:
            predicted = fitted.predict(X[rows])
        baseline = np.mean((y[rows] - y[train].mean()) ** 2)
        expected = 1 - np.mean((y[rows] - predicted) ** 2) / baseline
        assert found.name == "R²"
        assert found.value == pytest.approx(expected, rel=1e-6)
        assert found.value == pytest.approx(r2_score(y[rows], predicted), abs=0.02)
        assert found.is_clear
        assert found.n_rows == rows.size


def test_the_area_of_two_classes_is_that_of_scikit_learn():
    X, y = table()
    labels = np.where(y > 0, "yes", "no")
    train, rows = halves(len(y))
    forest = RandomForestClassifier(30, random_state=0).fit(X[train], labels[train])
    found = held_out_skill([[(as_critic(forest), train, rows)]], X, labels, read_response(labels))
    shares = forest.predict_proba(X[rows])[:, 1]
    assert found.name == "AUC"
    assert found.value == pytest.approx(roc_auc_score(labels[rows] == "yes", shares))


def test_ties_count_half_and_a_missing_class_is_nan():
    assert area_under_curve(np.zeros(4), np.array([True, False, True, False])) == 0.5
    assert np.isnan(area_under_curve(np.zeros(3), np.ones(3, dtype=bool)))


def test_concordance_is_harrells():
    rng = np.random.default_rng(0)
    times, happened = rng.integers(1, 9, 60).astype(float), rng.random(60) < 0.6
    scores = rng.integers(0, 5, 60).astype(float)
    right = total = 0.0
    for i in range(60):
        for j in range(60):
            later = times[j] > times[i] or (times[j] == times[i] and not happened[j])
            if happened[i] and later and i != j:
                total += 1
                right += float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j])
    assert concordant_pairs(scores, times, happened) == (right, total)
    # The cumulative hazard, which log-rank scores hold, orders times in the same way.
    hazard = happened - survival_scores(times, happened)
    assert concordant_pairs(scores, hazard.round(12), happened) == (right, total)


@pytest.mark.parametrize("kind", ["number", "classes", "survival", "several"])
def test_every_kind_of_response_has_a_skill(kind):
    X, y = table()
    if kind == "classes":
        y = np.digitize(y, [-1, 1])
    elif kind == "several":
        y = np.column_stack([y, -y + X[:, 1]])
    elif kind == "survival":
        y = pd.DataFrame({"time": np.exp(-y), "event": np.arange(len(y)) % 3 > 0})
    selector = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), random_state=0, n_repeats=1)
    found = selector.set_params(response="survival" if kind == "survival" else "auto").fit(X, y)
    names = {"classes": "AUC", "survival": "concordance"}
    assert found.skill_.name == names.get(kind, "R²")
    assert found.skill_.is_clear
    assert found.skill_.value > found.skill_.baseline + 0.15


def test_noise_has_no_skill():
    X, _ = table(n=120)
    clear = 0
    for seed in range(20):
        y = np.random.default_rng(seed).standard_normal(120)
        selector = HRTSelector(
            ConvexSIC(feature_map="landmark", lam=0.05), random_state=0, n_repeats=1, diagnose=False
        )
        clear += selector.fit(X, y).skill_.is_clear
    # At most one in twenty by construction; more than four of twenty: probability below 0.003.
    assert clear <= 4


def test_draws_of_missing_cells_do_not_leak_the_response():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), rng.standard_normal(200)
    X[rng.random(X.shape) < 0.5] = np.nan
    selector = HRTSelector(
        ConvexSIC(feature_map="landmark", lam=0.02), random_state=0, n_repeats=1, diagnose=False
    )
    assert not selector.fit(X, y).skill_.is_clear


def test_cross_validation_gives_the_skill_of_a_ranking():
    X, y = table()
    sic = ConvexSIC().fit(X, y)
    at = list(sic.lam_path_).index(sic.lam_)
    assert sic.skill_.value == pytest.approx(2 * sic.lam_risks_[:, at].mean())
    assert sic.skill_.is_clear
    permuted = ConvexSIC().fit(X, np.random.default_rng(2).permutation(y))
    assert not permuted.skill_.is_clear
    said = headline(permuted.summary(), None, permuted.skill_)
    assert said.startswith("No skill on held-out rows (R² ")
    assert "No skill" not in headline(sic.summary(), None, sic.skill_)
    assert "does not predict rows" in permuted._repr_html_()
    assert ConvexSIC(lam=0.02).fit(X, y).skill_ is None
    neural = NeuralSIC(optimizer=Optimizer(max_iter=20, rounds=1), random_state=0)
    assert neural.fit(X, y).skill_ is None
    assert cross_validated_skill(LassoCV().fit(X, y)) is None


def test_knockoffs_have_the_skill_of_their_estimator():
    X, y = table()
    found = KnockoffSelector(fdr=0.5, random_state=0).fit(X, y)
    assert found.skill_.is_clear
    lasso = KnockoffSelector(statistic="lasso_path", fdr=0.5, random_state=0)
    assert lasso.fit(X, y).skill_ is None


def test_the_words_say_which_side_of_the_baseline():
    none = Skill("R²", -0.034, 0.0, is_clear=False)
    assert none.shown == "−0.03"
    assert "does not predict" in none.sentence
    assert Skill("AUC", 0.8, 0.5, is_clear=True).sentence.endswith("AUC 0.80 (0.5 is chance).")
    assert Skill("R²", -0.001, 0.0, is_clear=False).shown == "0.00"
