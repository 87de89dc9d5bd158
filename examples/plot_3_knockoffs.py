"""
Knockoffs, one draw and several
===============================

Every column competes with a knockoff: a copy that was made without y.
"""

# %%
# The data
# --------
# Eighty columns, each correlated 0.5 with the next, twenty of which matter. Knockoffs need many
# columns that matter: at a rate of 20 % either at least five are selected or none.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sobolev import KnockoffSelector
from sobolev.plotting import plot_knockoff_statistics, plot_knockoffs

rng = np.random.default_rng(3)
n, p = 500, 80
X = rng.standard_normal((n, p))
for j in range(1, p):
    X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
X = pd.DataFrame(X, columns=[f"gene {j + 1}" for j in range(p)])
true = X.columns[::4]
signal, noise = X[true].sum(axis=1), rng.standard_normal(n)
y = signal + 4 * noise


def rates(selected):
    """Numbers of true and false discoveries."""
    return len(set(selected) & set(true)), len(set(selected) - set(true))


# %%
# One draw
# --------
# W is positive if the column beats its knockoff. Without an effect both signs are equally likely,
# so the number of columns left of the mirrored threshold estimates the number of false ones right
# of the threshold. The statistic here is the lasso path, the fastest choice for linear effects;
# leave ``statistic`` out to use :class:`~sobolev.ConvexSIC`.

one = KnockoffSelector(statistic="lasso_path", fdr=0.2, random_state=0).fit(X, y)
print("true, false:", rates(one.get_feature_names_out()))

plot_knockoff_statistics(one)
plt.show()

# %%
# Several draws
# -------------
# Knockoffs are random, and so is the result. With ``n_draws`` the e-values of several draws are
# averaged, and columns are selected by the averages. Each draw works at half the rate. Whether this
# helps depends on the effects: we repeat both with four seeds, at two levels of noise.


def shares(y, n_draws, seeds=4):
    """Share of runs that select each column."""
    selector = KnockoffSelector(statistic="lasso_path", fdr=0.2, n_draws=n_draws, diagnose=False)
    runs = [selector.set_params(random_state=seed).fit(X, y).support_ for seed in range(seeds)]
    return np.mean(runs, axis=0)


fig, axes = plt.subplots(2, 2, figsize=(10, 6), sharex=True, sharey=True, layout="constrained")
is_true = X.columns.isin(true)
for row, (level, size) in zip(axes, {"strong": 3, "weaker": 4}.items(), strict=True):
    for ax, n_draws in zip(row, [1, 10], strict=True):
        share = shares(signal + size * noise, n_draws)
        order = np.argsort(-share, kind="stable")
        ax.bar(range(p), share[order], color=np.where(is_true[order], "#0072B2", "#D55E00"))
        unsteady = np.sum((share > 0) & (share < 1))
        ax.set_title(f"{level} effects, n_draws={n_draws}: {unsteady} in some runs only")
        ax.set_xlim(-1, 30)
for ax in axes[:, 0]:
    ax.set_ylabel("share of four runs that select it")
for ax in axes[1]:
    ax.set_xlabel("columns, most often selected first")
for name, color in {"matters": "#0072B2", "does not": "#D55E00"}.items():
    axes[0, 1].bar(0, 0, color=color, label=name)
axes[0, 1].legend(frameon=False)
plt.show()

# %%
# With strong effects, ten draws drop the false columns and nearly all runs agree. With weaker
# effects, half the rate is too strict for some runs: fewer columns are found, and the runs agree no
# better than with one draw. More draws do not make up for too few rows.

# %%
# Are the knockoffs right?
# ------------------------
# Means, variances and correlations must not change when columns and knockoffs are swapped. The
# right panel concerns power: the more similar a column and its knockoff, the less power.
# :func:`~sobolev.knockoffs.diagnose_knockoffs` also trains a classifier to tell swapped pairs from
# real ones.

plot_knockoffs(one)
plt.show()
