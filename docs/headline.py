"""Draw the picture of the README: ``python docs/headline.py`` writes docs/headline.png."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import PathCollection

from sobolev import ConvexSIC, HRTSelector
from sobolev.datasets import make_sinexp
from sobolev.plotting import plot_pvalues

TRUE, OTHER, INK = "#0072B2", "#C3C8CF", "#333333"
SHOWN = 12


def draw_ranking(ax, scores, names, truth, title, label):
    """Bars of the largest scores; those of true columns in colour."""
    first = np.argsort(-scores)[:SHOWN]
    place = np.arange(SHOWN)
    ax.barh(place, scores[first], color=np.where(truth[first], TRUE, OTHER), height=0.76)
    ax.set_yticks(place, np.asarray(names)[first], fontsize=9)
    for tick, true in zip(ax.get_yticklabels(), truth[first], strict=True):
        tick.set_color(TRUE if true else "#777777")
        tick.set_fontweight("bold" if true else "normal")
    ax.axhline(5.5, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    ax.invert_yaxis()
    ax.set_xlabel(label, color=INK)
    found = int(truth[first][:6].sum())
    ax.set_title(f"{title}\n{found} of the 6 on top", loc="left", fontsize=12, fontweight="bold")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def main():
    data = make_sinexp(500, random_state=1, as_frame=True)
    X, y, names = data.data, data.target, data.feature_names
    truth = np.zeros(len(names), dtype=bool)
    truth[data.support] = True
    correlations = np.abs(np.corrcoef(X.to_numpy().T, y)[-1, :-1])
    sic = ConvexSIC(random_state=0).fit(X, y)
    hrt = HRTSelector(fdr=0.1, random_state=0).fit(X, y)
    false = int(hrt.support_[~truth].sum())

    figure, axes = plt.subplots(
        1, 3, figsize=(12.4, 4.3), width_ratios=[1, 1, 1.5], layout="constrained"
    )
    draw_ranking(axes[0], correlations, names, truth, "Correlation", "|correlation with y|")
    draw_ranking(axes[1], sic.feature_importances_, names, truth, "ConvexSIC", "importance (share)")
    plot_pvalues(hrt, ax=axes[2])
    for points in axes[2].collections:
        if isinstance(points, PathCollection):
            points.set_sizes([45])
    for name in axes[2].texts:
        name.set(fontsize=10, fontweight="bold", color=TRUE)
    axes[2].set_title(
        f"HRTSelector, false discovery rate 10 %\n{hrt.support_.sum() - false} of 6 true columns "
        f"found, {false or 'none'} false",
        loc="left",
        fontsize=12,
        fontweight="bold",
    )
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08, wspace=0.04)
    figure.suptitle(
        "500 rows, 50 correlated columns, of which six matter (blue): "
        "y = sin(x1 (x1 + x2)) · cos(x3 + x4 x5) · sin(exp(x5) + exp(x6) − x2) + noise",
        fontsize=10.5,
        color=INK,
        x=0.012,
        ha="left",
    )
    figure.savefig(Path(__file__).with_name("headline.png"), dpi=110)


if __name__ == "__main__":
    main()
