"""
Real data: penguins, with categories and missing values
=======================================================

What is the body mass of a penguin related to, beyond what the other columns tell?
"""

# %%
# The table
# ---------
# 344 penguins of three species from three islands near Palmer Station, Antarctica, in three seasons
# (Horst, Hill and Gorman 2020, package ``palmerpenguins``). Species, island and sex are categories;
# the sex of some birds and the measurements of two are missing. The table goes in as it is, except
# that rows without a body mass cannot be used.

import matplotlib.pyplot as plt
from palmerpenguins import load_penguins

from sobolev import ConvexSIC, HRTSelector
from sobolev.plotting import plot_effect, plot_pvalues

table = load_penguins().dropna(subset=["body_mass_g"])
print(table.head(4).to_string(index=False))
print("\nmissing:", table.isna().sum()[lambda counts: counts > 0].to_dict())

# %%
# Test
# ----
# Categories are tested as a whole, missing cells are drawn given the other columns. The notes say
# how much was missing.

hrt = HRTSelector(fdr=0.1, random_state=0).fit(table, "body_mass_g")
print(hrt.response_.sentence)
columns = ["feature", "kind", "importance", "pvalue", "qvalue", "selected", "note"]
print(hrt.summary()[columns].to_string(index=False, float_format="{:.2g}".format))

plot_pvalues(hrt)
plt.show()

# %%
# As a biologist reads it
# -----------------------
# Males are heavier than females of the same species and frame. The length of the flipper measures
# the frame of the bird, and the length of the bill adds a little to it. The species is left out:
# its p-value is small with the first model of the columns, but not after the second look. Flippers
# and bills tell what it says.
#
# The year is a warning more than a discovery: seasons differ, in food and in who measured. It is a
# covariate rather than a question, so adjust for it.

adjusted = HRTSelector(fdr=0.1, adjust=["year"], random_state=0).fit(table, "body_mass_g")
print("adjusted for the year:", ", ".join(adjusted.get_feature_names_out()))

# %%
# Now the depth of the bill is selected, too: where a p-value is close to the line, small changes
# decide. Choose covariates before you see the answer. The island is not selected. Gentoo live on
# Biscoe only and Chinstrap on Dream only, so the question is whether Adelie penguins of different
# islands differ, and few rows speak to it: "not selected" does not mean that they are the same.
#
# Both birds of a nest were measured, and the two rows are not independent; this table has no column
# for the nest. If yours has one, pass ``groups="nest"``.
#
# One effect
# ----------
# Mass rises with the length of the flipper within each species. Fitted to the complete rows.

complete = table.dropna()
X = complete[["flipper_length_mm", "bill_depth_mm"]].assign(
    male=(complete["sex"] == "male").astype(float),
    gentoo=(complete["species"] == "Gentoo").astype(float),
)
sic = ConvexSIC().fit(X, complete["body_mass_g"])
fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
plot_effect(sic, X, complete["body_mass_g"], "flipper_length_mm", ax=ax)
plt.show()
