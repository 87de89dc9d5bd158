"""
Is there any dependence at all?
===============================

A permutation test that detects dependence where the correlation is zero.
"""

# %%
# Five shapes
# -----------
# The correlation is near zero in all five; only in the last are x and y independent.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import pearsonr

from sobolev import sic_test

rng = np.random.default_rng(0)
n = 200
u, angle, noise = rng.uniform(-1, 1, n), rng.uniform(0, 2 * np.pi, n), rng.standard_normal((2, n))
shapes = {
    "parabola": (u, u**2 + 0.3 * noise[0]),
    "circle": (np.cos(angle) + 0.2 * noise[0], np.sin(angle) + 0.2 * noise[1]),
    "wave": (u, np.cos(2.5 * np.pi * u) + 0.5 * noise[0]),
    "spread": (u, np.abs(u) * noise[0]),
    "nothing": (noise[0], noise[1]),
}
fig, axes = plt.subplots(1, 5, figsize=(14, 3.4), layout="constrained")
for ax, (name, (x, y)) in zip(axes, shapes.items(), strict=True):
    p_sic = sic_test(x[:, None], y, n_permutations=499, random_state=0).pvalue
    ax.plot(x, y, ".", markersize=4, color="#0072B2" if p_sic < 0.05 else "#7A828C")
    ax.set_title(f"{name}\nsic_test p = {p_sic:.3g}\ncorrelation p = {pearsonr(x, y).pvalue:.2g}")
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Batches
# -------
# Two batches differ in the means of x and y. Within a batch x and y are independent, but the test
# that permutes all rows detects the batches. ``blocks`` permutes rows only within batches.

batch = np.repeat([0, 1], n // 2)
x = (noise[0] + 2 * batch)[:, None]
y = noise[1] + 2 * batch
free = sic_test(x, y, n_permutations=499, random_state=0).pvalue
within = sic_test(x, y, blocks=batch, n_permutations=499, random_state=0).pvalue

fig, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
for k, color in enumerate(["#0072B2", "#D55E00"]):
    ax.plot(x[batch == k, 0], y[batch == k], ".", color=color, label=f"batch {k + 1}")
ax.set(title=f"all rows: p = {free:.3g}; within batches: p = {within:.3g}", xlabel="x", ylabel="y")
ax.legend(frameon=False)
plt.show()
