"""The selection rule of the SIC estimators: by number, by threshold or by the mean."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index, Mask
from sobolev.criterion import adjusted_groups
from sobolev.skill import Skill, cross_validated_skill
from sobolev.summary import ADJUSTED, SummaryMixin
from sobolev.validation import feature_names


def select(
    importances: Array,
    n_features_to_select: int | float | None = None,
    threshold: float | None = None,
) -> Mask:
    """Select the features with the largest importances, or those above a threshold.

    A feature with importance zero is never selected.

    Parameters
    ----------
    importances : array of shape (d,)
        Importances that sum to one.
    n_features_to_select : int, float or None, default=None
        Number of features to select, or their fraction.
    threshold : float or None, default=None
        Importance that a feature must exceed; the mean, 1/d, if both parameters are None.

    Returns
    -------
    array of bool, shape (d,)
        Mask of the selected features.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.selection import select
    >>> select(np.array([0.6, 0.3, 0.1, 0.0]))
    array([ True,  True, False, False])
    >>> select(np.array([0.6, 0.3, 0.1, 0.0]), n_features_to_select=3)
    array([ True,  True,  True, False])
    """
    d = importances.size
    if n_features_to_select is not None and threshold is not None:
        raise ValueError("pass n_features_to_select or threshold, not both.")
    if n_features_to_select is None:
        level = 1.0 / d if threshold is None else threshold
        if not isinstance(level, Real) or isinstance(level, bool):
            raise TypeError(f"threshold must be a number; got {threshold!r}.")
        if d == 1 and threshold is None:
            return importances > 0
        # An importance of 1/d plus rounding error is not above the mean.
        return (importances > 0) & (importances > level * (1 + 1e-9))
    count = _count(n_features_to_select, d)
    mask = np.zeros(d, dtype=bool)
    mask[np.argsort(-importances, kind="stable")[:count]] = True
    return mask & (importances > 0)


def _count(n_features_to_select: Any, d: int) -> int:
    number = isinstance(n_features_to_select, Real) and not isinstance(n_features_to_select, bool)
    if number and isinstance(n_features_to_select, Integral):
        if not 1 <= int(n_features_to_select) <= d:
            raise ValueError(
                f"n_features_to_select={n_features_to_select} must be between 1 and the number "
                f"of features, {d}."
            )
        return int(n_features_to_select)
    if number and 0 < float(n_features_to_select) <= 1:
        return max(1, round(float(n_features_to_select) * d))
    raise ValueError(
        "n_features_to_select must be an integer or a fraction in (0, 1]; "
        f"got {n_features_to_select!r}."
    )


class SICSelectorMixin(SummaryMixin, SelectorMixin):
    """Selector methods for an estimator with ``feature_importances_``.

    The estimator must have the parameters ``n_features_to_select``, ``threshold`` and ``adjust``.
    """

    adjust: Any
    n_features_to_select: int | float | None
    threshold: float | None
    feature_importances_: Array
    standardizer_: Standardizer

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "feature_importances_")
        return select(self.feature_importances_, self.n_features_to_select, self.threshold)

    @property
    def support_(self) -> Mask:
        """Mask of the selected features."""
        return self._get_support_mask()

    @property
    def skill_(self) -> Skill | None:
        """How well held-out rows are predicted, from the cross-validation that chose ``lam``."""
        check_is_fitted(self, "feature_importances_")
        return cross_validated_skill(self)

    def _selected_units(self, units: list[Index], shares: Array) -> Mask:
        """Groups of columns are selected as a whole, by the same rule."""
        if all(columns.size == 1 for columns in units):
            return super()._selected_units(units, shares)
        asked = self.n_features_to_select
        fitting = min(asked, len(units)) if isinstance(asked, Integral) else asked
        return select(shares, fitting, self.threshold)

    def _notes(self) -> dict[int, str]:
        screened = getattr(self, "screening_", None) is not None
        note = "constant, or left out by screening" if screened else "constant"
        names = feature_names(self)
        adjusted = adjusted_groups(self.feature_groups, self.adjust, len(names), names).adjusted
        return dict.fromkeys(
            np.flatnonzero(~self.standardizer_.varying).tolist(), note
        ) | dict.fromkeys(np.flatnonzero(adjusted).tolist(), ADJUSTED)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = False
        return tags
