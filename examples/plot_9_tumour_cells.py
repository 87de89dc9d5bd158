"""
Real data: tumour cells, thirty columns that say the same
=========================================================

The diagnosis can be predicted well, and yet no single column is selected. What to ask instead.
"""

# %%
# The table
# ---------
# Nuclei of cells from 569 breast tumours, benign or malignant (Street, Wolberg and Mangasarian
# 1993, from scikit-learn). Ten properties of the nuclei, from radius to fractal dimension, each as
# the mean over the cells, its standard error and the mean of the three worst cells: 30 columns.
# Radius, perimeter and area are nearly functions of each other.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from sobolev import HRTSelector, sic_test
from sobolev.plotting import plot_pvalues

data = load_breast_cancer(as_frame=True)
X = data.data
diagnosis = data.target.map({0: "malignant", 1: "benign"}).rename("diagnosis")
print("correlation of radius and area:", X["mean radius"].corr(X["mean area"]).round(3))

whole = sic_test(X, diagnosis, n_permutations=199, random_state=0)
print("p-value of any dependence:", whole.pvalue)

# %%
# Column by column: nothing
# -------------------------
# The diagnosis depends on the columns beyond doubt. But for each single column there are others
# that tell nearly the same, so given all others it adds little. Radius, perimeter and area cannot
# be told apart at all and are tested as one feature.

single = HRTSelector(fdr=0.1, random_state=0).fit(X, diagnosis)
columns = ["feature", "importance", "pvalue", "qvalue", "selected"]
print(single.summary()[columns].head(8).to_string(index=False, float_format="{:.2g}".format))

# %%
# This empty answer is right: no single column is needed. It is also not what a pathologist wants to
# know.
#
# Property by property
# --------------------
# A pathologist thinks in properties: how large are the nuclei, how irregular their outline, how
# uneven their texture? Each becomes a group of columns, chosen by meaning, before looking at the
# diagnosis.

properties = {
    "size": ("radius", "perimeter", "area"),
    "texture": ("texture",),
    "smoothness": ("smoothness",),
    "shape of the outline": ("compactness", "concavity", "concave points"),
    "symmetry": ("symmetry",),
    "fractal dimension": ("fractal dimension",),
}


def property_of(column):
    return column.removeprefix("mean ").removeprefix("worst ").removesuffix(" error")


groups = {
    name: [column for column in X if property_of(column) in words]
    for name, words in properties.items()
}
grouped = HRTSelector(fdr=0.1, feature_groups=groups, random_state=0).fit(X, diagnosis)
print(grouped.summary()[columns].to_string(index=False, float_format="{:.2g}".format))

plot_pvalues(grouped)
plt.show()

# %%
# Smoothness and the shape of the outline each add information that the other properties do not
# have: an irregular outline is what pathologists look for. So are large nuclei, but the size is
# left out: its p-value is small with the first model of the columns and not with a corrected one,
# so the other properties may tell what it says. Nothing shows that texture, symmetry or fractal
# dimension add to these. Importance is not evidence: the critic uses size and texture most, but on
# held-out rows draws of them given the other properties do as well.
#
# The groups must not be chosen by their p-values. If two groupings make sense, decide for one
# before you run the test.
