"""The same public tables through the shell and through Python give the same p-values."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest

from reproduction.benchmarks.public_tables import READERS, TARGETS
from reproduction.benchmarks.real_tables import MissingTable
from sobolev import HRTSelector

PUBLIC = [
    "palmerpenguins/penguins",
    "pydataset/COUNT/titanic",
    "pydataset/MASS/Cars93",
    "pydataset/MASS/birthwt",
    "pydataset/MASS/Pima.tr2",
    "pydataset/car/Womenlf",
    "pydataset/ggplot2/mpg",
    "pydataset/survival/veteran",
    "pydataset/vcd/Arthritis",
    "scikit-learn/wine",
]


@pytest.mark.parametrize("name", PUBLIC)
def test_shell_and_python_agree_on_public_tables(name, run, here):
    package, _, path = name.partition("/")
    try:
        content = READERS[package](path)
    except MissingTable as error:
        pytest.skip(str(error))
    table = pd.read_csv(io.BytesIO(content))[::2]
    table.to_csv(here / "data.csv", index=False)
    target = TARGETS[package][path]
    said = run("select", "data.csv", "-t", target, "--no-report", "--format", "csv", "--seed", 3)
    assert said.code == 0, said.err
    shell = pd.read_csv(io.StringIO(said.out)).set_index("feature")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        python = HRTSelector(random_state=3).fit(table, target).summary().set_index("feature")
    tested = python[python["pvalue"].notna()]
    assert len(tested) >= 3
    same = shell.loc[tested.index]
    np.testing.assert_allclose(same["pvalue"], tested["pvalue"], rtol=1e-10)
    assert same["selected"].tolist() == tested["selected"].tolist()
    assert shell["pvalue"].notna().sum() == len(tested)
