"""
Rank columns, and vary the penalty
==================================

Fifty correlated columns, six of which matter, only through sines, products and exponentials.
"""

# %%
# The data
# --------
# SinExp is the first experiment of the paper:
# y = sin(x1 (x1 + x2)) · cos(x3 + x4 x5) · sin(exp(x5) + exp(x6) − x2) + noise.
# The columns are in random order, and every pair has correlation 0.5.

import matplotlib.pyplot as plt

from sobolev import ConvexSIC, sic_path
from sobolev.datasets import make_sinexp
from sobolev.plotting import plot_importances, plot_path

data = make_sinexp(n_samples=300, shuffle_features=True, random_state=1, as_frame=True)
X, y = data.data, data.target

# %%
# Rank
# ----
# The importances sum to one. By default the columns above the mean share, here 1/50, are selected.
# This controls no error rate: some selected columns have no effect.

sic = ConvexSIC().fit(X, y)
print("first six:", *sorted(sic.summary()["feature"].head(6)))
print("lam by cross-validation:", sic.lam_)

plot_importances(sic, threshold=1 / X.shape[1], max_features=15)
plt.show()

# %%
# Is there anything to rank?
# --------------------------
# ``score`` is the criterion on new rows. With one numeric response it is half the share of variance
# that the critic explains. If it is zero or negative, do not trust the ranking.

fresh = make_sinexp(n_samples=1000, random_state=2, as_frame=True)
print(f"held-out score: {sic.score(fresh.data[X.columns], fresh.target):.3f}")

# %%
# The path
# --------
# A larger penalty selects fewer columns. The six true ones stay longest.

plot_path(sic_path(X, y), highlight=6)
plt.show()
