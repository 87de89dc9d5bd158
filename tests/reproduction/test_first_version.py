"""The first version at equal false discovery rates: the level at which it is judged."""

import numpy as np
import pytest

from reproduction.benchmarks import first_version
from sobolev.inference.planting import SHAPES


def rows(rates, rate_of_default):
    """Two responses of each kind on one table; power falls with the level."""
    found = [(0.9 - 0.1 * k, rate) for k, rate in enumerate(rates)]
    kinds = {shape: {"levels": found, "tpr": 0.9, "fdp": rates[0]} for shape in SHAPES}
    ours = {shape: {"tpr": 0.8, "fdp": rate_of_default} for shape in SHAPES}
    wine = {"table": "wine", "seconds": 1.0}
    return [
        row
        for seed in (0, 1)
        for row in (
            wine | {"study": "first_version", "seed": seed, "kinds": kinds},
            wine | {"study": "certificate", "seed": seed, "kinds": ours, "method": "HRTSelector"},
        )
    ]


@pytest.mark.parametrize(
    ("rate", "cell"), [(0.05, "0.70 (0.04)"), (0.3, "0.90 (0.30)"), (0.0, "0.60 (0.01)")]
)
def test_the_largest_level_with_the_rate_of_the_default(rate, cell):
    text = first_version.body(rows([0.3, 0.2, 0.04, 0.01], rate))
    (line,) = [line for line in text.splitlines() if line.startswith("| wine")]
    assert line.split("|")[1:5] == [
        " wine (6) ",
        f" 0.80 ({rate:.2f}) ",
        " 0.90 (0.30) ",
        f" {cell} ",
    ]


def test_without_such_a_level_nothing_is_found():
    text = first_version.body(rows([0.3, 0.2], 0.1))
    assert "| 0.00 (0.00) | +0.800 ± 0.000 |" in text


def test_selections_shrink_with_the_level():
    result = first_version.measure({"table": "wine"}, 3000)["kinds"]
    assert set(result) == set(SHAPES)
    for kind in result.values():
        power = np.array(kind["levels"])[:, 0]
        assert (np.diff(power) <= 0).all()
        assert kind["tpr"] <= power[0]
