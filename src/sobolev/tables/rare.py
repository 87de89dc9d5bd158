"""Classes of a response that are too rare to be tested."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sobolev._typing import Mask
from sobolev.validation import list_some


def rows_of_common_classes(y: Mapping[str, pd.Series], n: int, notes: list[str]) -> Mask:
    """Mask of the n rows whose classes have at least two rows; a note names the other classes.

    If fewer than two classes would be left, all rows are kept.
    """
    kept = np.ones(n, dtype=bool)
    for name, response in y.items():
        if response.dtype != object:
            continue
        counts = response.value_counts()
        single = counts.index[counts < 2]
        if len(single) and len(counts) - len(single) >= 2:
            kept &= ~response.isin(single).to_numpy()
            shown = list_some([repr(label) for label in single])
            notes.append(
                f"Classes of the target {name!r} with a single row were left out: {shown}."
            )
    return kept
