"""Pictures of a fitted selector.

Functions that draw into one axes take ``ax`` and return it. No global style is changed, and names
are shown as they are.
"""

from sobolev.plotting.audit import plot_audit
from sobolev.plotting.conditional import plot_conditional
from sobolev.plotting.effects import plot_effect
from sobolev.plotting.importances import plot_importances, plot_path
from sobolev.plotting.interactions import interaction_strengths, plot_interactions
from sobolev.plotting.knockoffs import plot_knockoffs
from sobolev.plotting.null import plot_null
from sobolev.plotting.partial_effects import PartialEffect, partial_effect
from sobolev.plotting.selection import plot_knockoff_statistics, plot_pvalues
from sobolev.plotting.style import ACCENT, CYCLE, OTHER, SELECTED

__all__ = [
    "ACCENT",
    "CYCLE",
    "OTHER",
    "SELECTED",
    "PartialEffect",
    "interaction_strengths",
    "partial_effect",
    "plot_audit",
    "plot_conditional",
    "plot_effect",
    "plot_importances",
    "plot_interactions",
    "plot_knockoff_statistics",
    "plot_knockoffs",
    "plot_null",
    "plot_path",
    "plot_pvalues",
]
