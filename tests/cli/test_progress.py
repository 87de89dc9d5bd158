"""Progress of a fit as a program hears it, and warnings by their classes."""

import warnings

import numpy as np
import pytest

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector
from sobolev._progress import Bar, listening
from sobolev.cli import running, terminal
from sobolev.exceptions import ConstantColumnWarning, SobolevWarning, TargetError


class Listener:
    def __init__(self):
        self.stages, self.steps = [], []

    def stage(self, text, total=None):
        self.stages.append((text, total))

    def step(self, text, completed=None):
        self.steps.append(completed)


@pytest.mark.parametrize(
    ("selector", "total"),
    [
        (HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), n_repeats=2, random_state=0), 10),
        (
            KnockoffSelector(
                ConvexSIC(feature_map="landmark", lam=0.02), n_draws=3, fdr=0.5, random_state=0
            ),
            3,
        ),
    ],
)
def test_a_listener_hears_of_every_fit(selector, total):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 8))
    heard = Listener()
    with listening(heard):
        selector.fit(X, X[:, 0] + X[:, 1])
    assert heard.stages[0][1] == total
    assert len(heard.steps) == total
    assert heard.steps == sorted(heard.steps)


def test_the_reporter_uses_the_bar_of_the_package_on_a_terminal(monkeypatch):
    with terminal.Reporter(quiet=False) as reporter:
        assert reporter.bar is None
    monkeypatch.setattr(terminal.sys.stderr, "isatty", lambda: True, raising=False)
    with terminal.Reporter(quiet=False) as reporter:
        assert isinstance(reporter.bar, Bar)
        reporter.stage("fitting", 3)
        reporter.step("fit 1 of 3", 1)
    with terminal.Reporter(quiet=True) as reporter:
        assert reporter.bar is None


def test_warnings_are_told_once_and_by_class():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in (SobolevWarning, SobolevWarning, ConstantColumnWarning, FutureWarning):
            warnings.warn("look at this", category, stacklevel=1)
    assert running.plain_words(caught) == ["Look at this"]


def test_only_errors_of_the_target_are_explained(run, table, monkeypatch):
    def fail(error):
        def fit(self, X, y=None):
            raise error("y holds the label 'rare', unseen in fit")

        monkeypatch.setattr(HRTSelector, "fit", fit)
        return run("select", table, "-t", "y", "--no-report").err

    assert "merge rare classes" in fail(TargetError)
    assert "unseen in fit" in fail(ValueError)
