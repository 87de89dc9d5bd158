"""Draw "which method when": ``python docs/which_method.py`` writes docs/which-method.png."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

INK, LINE, ASK, TAKE = "#1F2328", "#6B7280", "#F3F4F6", "#E3F0F8"
BLUE = "#0072B2"
# The questions, from top to bottom: (question, what to use after "yes", its remark).
STEPS = (
    (
        "Do you only want to know whether\nthere is any dependence?",
        "sic_test",
        "exact p-value, any number of rows\nsobolev test",
    ),
    (
        "Is a ranking enough,\nwithout an error rate?",
        "ConvexSIC",
        "importances; NeuralSIC for networks\nsobolev rank",
    ),
    (
        "Do rows belong together\n(patients, time series)?",
        "HRTSelector, groups=",
        "p-values from the spread between subjects\nsobolev select --subject",
    ),
    (
        "Do dozens of columns matter, or do you know\nthe joint distribution of the columns?",
        "KnockoffSelector",
        "one fit; selects at least 1 / fdr columns or none\nsobolev select --method knockoffs",
    ),
)
LAST = ("HRTSelector", "p-values; finds a single column, too\nsobolev select")
STEP, HEIGHT, QUESTION, ANSWER = 1.45, 0.95, (0.1, 5.2), (6.9, 5.4)


def box(ax, x, y, width, color, edge):
    shape = "round,pad=0,rounding_size=0.12"
    ax.add_patch(FancyBboxPatch((x, y), width, HEIGHT, shape, facecolor=color, edgecolor=edge))


def answer(ax, y, name, words, place=ANSWER):
    x, width = place
    box(ax, x, y, width, TAKE, BLUE)
    ax.text(x + 0.2, y + 0.72, name, color=BLUE, fontsize=12, fontweight="bold", va="center")
    ax.text(x + 0.2, y + 0.3, words, color=INK, fontsize=9.2, va="center", linespacing=1.25)


def arrow(ax, start, end, word, place):
    style = {"arrowstyle": "-|>", "color": LINE, "linewidth": 1.3}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)
    ax.text(*place, word, color=LINE, fontsize=10, va="center")


def main():
    figure, ax = plt.subplots(figsize=(9.6, 5.9), layout="constrained")
    x, width = QUESTION
    for k, (question, name, words) in enumerate(STEPS):
        y = -STEP * k
        box(ax, x, y, width, ASK, "#D1D5DB")
        middle = (x + width / 2, y + HEIGHT / 2)
        ax.text(*middle, question, color=INK, fontsize=10.5, ha="center", va="center")
        answer(ax, y, name, words)
        arrow(ax, (x + width, middle[1]), (ANSWER[0], middle[1]), "yes", (5.85, middle[1] + 0.17))
        below = (middle[0], y - STEP + HEIGHT)
        arrow(ax, (middle[0], y), below, "no", (middle[0] + 0.12, y - 0.25))
    y = -STEP * len(STEPS)
    answer(ax, y, *LAST, place=QUESTION)
    note = "Then measure the level on your own columns:\naudit, sobolev audit, or select --audit."
    ax.text(ANSWER[0] + 0.2, y + HEIGHT / 2, note, color=INK, fontsize=10, va="center")
    ax.set(xlim=(0, 12.4), ylim=(y - 0.1, HEIGHT + 0.1))
    ax.axis("off")
    figure.savefig(Path(__file__).with_name("which-method.png"), dpi=110)


if __name__ == "__main__":
    main()
