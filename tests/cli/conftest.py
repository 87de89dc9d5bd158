from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sobolev.cli import app


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run():
    """Call the command in this process: exit code, standard output and standard error."""

    def call(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return SimpleNamespace(code=result.exit_code, out=result.stdout, err=result.stderr)

    return call


@pytest.fixture
def frame():
    """100 rows: y follows x1, x2 and the site."""
    rng = np.random.default_rng(3)
    n = 100
    X = rng.normal(size=(n, 4))
    site = rng.choice(["north", "south", "west"], n)
    y = 2 * X[:, 0] + np.abs(X[:, 1]) * 2 + 2.0 * (site == "west") + 0.3 * rng.normal(size=n)
    return pd.DataFrame(
        {
            "sample_id": [f"s{i}" for i in range(n)],
            **{f"x{j + 1}": X[:, j] for j in range(4)},
            "site": site,
            "constant": 7,
            "y": y,
        }
    )


@pytest.fixture
def table(frame, here):
    frame.to_csv(here / "data.csv", index=False)
    return "data.csv"
