"""
Discoveries: p-values, effects, interactions
============================================

Which columns matter given all others, with at most 10 % false ones on average, and how they act.
"""

# %%
# The data
# --------
# A greenhouse: growth increases with light until it saturates and is best at medium acidity; water
# helps where it is warm and harms where it is cold. Ten more readings are correlated with these but
# have no effect.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sobolev import ConvexSIC, HRTSelector, hrt_test
from sobolev.plotting import plot_effect, plot_interactions, plot_null, plot_pvalues

rng = np.random.default_rng(0)
n = 300
names = ["light", "acidity", "warmth", "water", *(f"reading {k}" for k in range(1, 11))]
common = rng.standard_normal((n, 1))
X = pd.DataFrame(0.6 * common + 0.8 * rng.standard_normal((n, 14)), columns=names)
growth = (
    1.5 * np.tanh(1.5 * X["light"])
    - 0.6 * X["acidity"] ** 2
    + 1.5 * X["warmth"] * X["water"]
    + rng.standard_normal(n)
)

# %%
# Test
# ----
# The test replaces one column at a time by draws from its conditional distribution given the
# others. If the critic then does worse on rows that it was not fitted to, the column matters.

hrt = HRTSelector(fdr=0.1, random_state=0).fit(X, growth)
print(hrt.summary().round(4).head(6).to_string(index=False))

plot_pvalues(hrt)
plt.show()

# %%
# One column
# ----------
# :func:`~sobolev.hrt_test` tests a single column. The curve is the distribution of the statistic
# under the null hypothesis that the column does not matter given the others.

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, name in zip(axes, ["water", "reading 1"], strict=True):
    plot_null(hrt_test(X, growth, name, random_state=0), feature=name, ax=ax)
plt.show()

# %%
# Effects
# -------
# Fit again, to the discoveries alone, and plot the critic. The band holds 80 % of the rows: where
# it is wide, the effect depends on other columns. This plot is a description, not a test.

found = hrt.get_feature_names_out()
sic = ConvexSIC().fit(X[found], growth)

fig, axes = plt.subplots(1, 4, figsize=(13, 3.6), sharey=True, layout="constrained")
for ax, name in zip(axes, found, strict=True):
    plot_effect(sic, X[found], growth, name, ax=ax)
    ax.set_title("", loc="left")
    ax.label_outer()
plt.show()

# %%
# Interactions
# ------------
# The mean absolute mixed second derivative of the critic. For additive columns it is small, but not
# zero: the critic is estimated from 300 rows. The map is a description, not a test. With noise 1.5,
# larger effects of light and acidity and a product of 1.2, its strongest pair was a wrong one,
# light × acidity.

plot_interactions(sic, X[found], growth, found)
plt.show()
