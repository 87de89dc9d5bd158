"""Type aliases of the numeric code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]
AnyArray = NDArray[Any]

__all__ = ["AnyArray", "Array", "Index", "Mask"]
