"""
Labels and one-hot groups
=========================

A response with three classes, and categorical columns whose one-hot columns are tested together.
"""

# %%
# The data
# --------
# Three species differ in wing length and habitat. Weight depends on length and carries no further
# information.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sobolev import ConvexSIC, HRTSelector
from sobolev.plotting import plot_effect, plot_importances, plot_pvalues

rng = np.random.default_rng(1)
n = 450
length = rng.standard_normal(n)
site = rng.choice(["coast", "forest", "hills", "town"], n)
table = pd.DataFrame(
    {
        "length": length,
        "weight": 0.8 * length + 0.6 * rng.standard_normal(n),
        **{f"reading {k}": rng.standard_normal(n) for k in range(1, 9)},
        "site": site,
        "observer": rng.choice(["Ann", "Bo", "Cy"], n),
    }
)
utility = np.column_stack([1.5 * length, 1.5 * (site == "coast"), 1 - length**2])
species = np.array(["long", "coastal", "common"])[(utility + rng.gumbel(size=(n, 3))).argmax(1)]

# %%
# One-hot columns and their groups
# --------------------------------
# ``sobolev select`` does this automatically. In Python it takes two lines.

X = pd.get_dummies(table, columns=["site", "observer"], dtype=float)
groups = {name: [c for c in X if c.startswith(f"{name}_")] for name in ["site", "observer"]}
print(groups)

# %%
# Rank
# ----
# Each group has one importance: the site counts once, not four times.

sic = ConvexSIC(feature_groups=groups).fit(X, species)
print("classes:", *sic.classes_)

plot_importances(sic)
plt.show()

# %%
# Test
# ----
# The columns of a group are replaced together, by draws of the categorical variable.

hrt = HRTSelector(feature_groups=groups, random_state=0).fit(X, species)
print("discoveries:", *hrt.get_feature_names_out())

plot_pvalues(hrt)
plt.show()

# %%
# Effects
# -------
# For labels there is a curve for each class, above zero where the class is more frequent than
# overall. The common species has medium length.

fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
plot_effect(sic, X, species, "length", ax=ax)
plt.show()
