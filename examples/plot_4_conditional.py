"""
Is the model of the columns right?
==================================

The holdout randomization test is as good as its model of a column given the others. This example
shows a model that fails, how to notice it, and how to fix it.
"""

# %%
# The data
# --------
# ``area`` is the square of ``width``, measured with an error. The response depends on the width
# alone: given the width, the area carries no information.

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
# The default predicts a column by ridge regression on the others and adds a residual. It cannot fit
# a parabola, so its draws of the area do not depend on the width. A forest can. ``rows`` says which
# fitted rows these are: each gets a prediction from a model that has not seen it.

tree = RandomForestRegressor(60, min_samples_leaf=10, random_state=0)
models = {
    "ridge": ResidualConditional().fit(X),
    "forest": ResidualConditional(tree).fit(X),
}
colors = {"data": "#444444", "ridge": "#D55E00", "forest": "#0072B2"}
draws = {
    name: model.sample(X, 1, random_state=0, rows=np.arange(n))[:, 0]
    for name, model in models.items()
}

fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained")
for ax, (name, area) in zip(axes, {"data": X["area"], **draws}.items(), strict=True):
    ax.plot(X["width"], area, ".", markersize=4, color=colors[name])
    ax.set(title="data" if name == "data" else f"a draw, {name}", xlabel="width")
axes[0].set_ylabel("area")
plt.show()

# %%
# The check
# ---------
# Evaluate the conditional distribution function of each row at the observed value. If the model is
# right, the results are uniform and do not depend on the other columns. ``HRTSelector`` makes this
# check in ``fit`` and raises a ``ConditionalModelWarning`` that names the columns.

checks = {name: diagnose_conditional(model, X, ["area"]) for name, model in models.items()}
effects = pd.concat({name: check.table() for name, check in checks.items()})
print(effects[["uniform", "location", "spread", "correlation", "fails"]].round(2))

# %%
# Ridge: uniform over all rows, but the position in the distribution depends on the other columns.

plot_conditional(checks["ridge"])
plt.show()

# %%
# Forest: all checks pass.

plot_conditional(checks["forest"])
plt.show()

# %%
# What it costs
# -------------
# With the wrong model the area gets a tiny p-value. With the right one it does not; its p-value is
# uniformly distributed, so another seed gives another value.

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    result = hrt_test(X, y, "area", conditional=model, random_state=0)
    print(f"{name}: p = {result.pvalue:.2g}")
    plot_null(result, feature=f"area, {name}", ax=ax)
plt.show()
