"""
Is the model of the columns right?
==================================

The holdout randomization test is as good as its model of a column given the others. Here is one
that fails, how it shows, and the remedy.
"""

# %%
# The data
# --------
# ``area`` is the square of ``width``, measured with an error. The response depends on the width
# alone: given the width, the area says nothing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from sobolev import hrt_test
from sobolev.conditionals import ResidualConditional, diagnose_conditional
from sobolev.plotting import plot_conditional, plot_null

rng = np.random.default_rng(0)
n = 500
X = pd.DataFrame(rng.standard_normal((n, 4)), columns=["width", "area", "a", "b"])
X["width"] = rng.uniform(-2, 2, n)
X["area"] = X["width"] ** 2 + 0.5 * X["area"]
y = X["width"] ** 2 + rng.standard_normal(n)

# %%
# Two models
# ----------
# The default predicts a column by ridge regression on the others and adds a residual. It cannot see
# a parabola, so its draws of the area know nothing of the width. A forest sees it.

tree = RandomForestRegressor(60, min_samples_leaf=10, random_state=0)
models = {
    "ridge": ResidualConditional().fit(X),
    "forest": ResidualConditional(tree).fit(X),
}
colors = {"data": "#444444", "ridge": "#D55E00", "forest": "#0072B2"}
draws = {name: model.sample(X, 1, random_state=0)[:, 0] for name, model in models.items()}

fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained")
for ax, (name, area) in zip(axes, {"data": X["area"], **draws}.items(), strict=True):
    ax.plot(X["width"], area, ".", markersize=4, color=colors[name])
    ax.set(title="data" if name == "data" else f"a draw, {name}", xlabel="width")
axes[0].set_ylabel("area")
plt.show()

# %%
# The check
# ---------
# Take the distribution function of each row's law at the observed value. It must be uniform, and
# must not depend on the other columns. ``HRTSelector`` does this check by itself and raises a
# ``ConditionalModelWarning`` that names the columns.

checks = {name: diagnose_conditional(model, X, ["area"]) for name, model in models.items()}
effects = pd.concat({name: check.table() for name, check in checks.items()})
print(effects[["uniform", "location", "spread", "correlation", "fails"]].round(2))

# %%
# Ridge: uniform over all rows, but the place within the law follows the other columns.

plot_conditional(checks["ridge"])
plt.show()

# %%
# Forest: nothing stands out.

plot_conditional(checks["forest"])
plt.show()

# %%
# What it costs
# -------------
# The wrong model discovers the area, and very surely so. The right one does not; its p-value is one
# of a uniform law, so another seed gives another.

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    result = hrt_test(X, y, "area", conditional=model, random_state=0)
    print(f"{name}: p = {result.pvalue:.2g}")
    plot_null(result, feature=f"area, {name}", ax=ax)
plt.show()
