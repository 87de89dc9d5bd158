"""The forms in which a data set is returned."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from sobolev._typing import AnyArray, Array


def as_requested(
    X: Array,
    y: AnyArray,
    names: AnyArray,
    *,
    return_X_y: bool,
    as_frame: bool,
    target_name: str,
    index: Any = None,
    **more: Any,
) -> Any:
    """The data and the target, as a pair or in a Bunch with ``more``, as arrays or in pandas."""
    data: Any = X
    target: Any = y
    if as_frame:
        data = pd.DataFrame(X, columns=names, index=index)
        target = pd.Series(y, index=index, name=target_name)
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, feature_names=names, **more)
