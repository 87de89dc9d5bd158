"""The study of where the test loses power."""

import numpy as np

from reproduction.benchmarks import decomposition


def test_the_response_is_linear_in_a_quarter_of_the_columns():
    X, y, beta = decomposition.draw(0)
    assert np.count_nonzero(beta) == 15
    assert set(beta[beta != 0]) == {-1.0, 1.0}
    assert np.corrcoef(y, X @ beta)[0, 1] > 0.75


def test_a_better_critic_finds_more_and_the_difference_is_paired():
    rows = []
    for variant in ("default", "critic: the true function"):
        settings = {"variant": variant}
        rows += [
            settings | {"version": "0", "seed": seed} | decomposition.measure(settings, seed)
            for seed in (0, 1)
        ]
    page = decomposition.render(rows)
    more = np.mean([rows[2 + k]["tpr"] - rows[k]["tpr"] for k in (0, 1)])
    assert more >= 0
    assert f"{more:.3f}" in page.split("critic: the true function")[1]
    assert {task.settings["variant"] for task in decomposition.tasks(True)} == set(
        decomposition.VARIANTS
    )
