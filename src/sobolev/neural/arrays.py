"""The few operations that numpy and torch spell differently.

The networks are written once, in the operators that numpy arrays and torch tensors share. On the
CPU they run on numpy, whose calls cost a third of torch's for arrays of this size; on other devices
and inside automatic differentiation they run on torch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

Array = Any  # a numpy array or a torch tensor


def namespace(array: Array) -> Any:
    """The module, numpy or torch, that an array belongs to."""
    return torch if isinstance(array, torch.Tensor) else np


def to_device(array: Any, device: torch.device | None) -> Array:
    """A numpy array as it is when there is no device, or a tensor on the device."""
    return array if device is None else torch.as_tensor(array).to(device)


def to_numpy(array: Array) -> Any:
    """A tensor of any device as a numpy array."""
    return array.detach().cpu().numpy() if isinstance(array, torch.Tensor) else array


class Keep(NamedTuple):
    """A dropout mask: what is kept, and the factor that makes up for the rest."""

    kept: Array
    factor: float


def activation(pre: Array, slope: float, keep: Keep | None) -> tuple[Array, Array]:
    """Values of a (leaky) ReLU with dropout, in place, and its mask: slope times dropout.

    The mask is a constant for automatic differentiation, as it should be: its derivative is zero.
    """
    if isinstance(pre, torch.Tensor):
        mask = (pre.detach() > 0).to(pre.dtype)
        if slope:
            mask = mask * (1 - slope) + slope
        if keep is not None:
            mask = mask * keep.kept * keep.factor
        return pre * mask, mask
    positive = pre > 0
    if keep is not None and not slope:
        positive &= keep.kept
    mask = positive.astype(pre.dtype)
    if slope:
        mask *= 1 - slope
        mask += slope
        if keep is not None:
            mask *= keep.kept
    if keep is not None:
        mask *= keep.factor
    pre *= mask
    return pre, mask


def rectified(pre: Array, slope: float) -> Array:
    """Values of a (leaky) ReLU on numpy, in place, without a mask."""
    return np.maximum(pre, slope * pre if slope else 0.0, out=pre)


def keep_freed_memory() -> None:
    """Let the C library keep freed memory up to 32 MiB instead of handing it back at once.

    An update frees and asks for arrays of about a mebibyte again and again. Freeing one large
    block teaches the GNU allocator, for the rest of the process, not to return such memory to the
    system each time; fetching it anew would double the time of an update. Elsewhere it does
    nothing.
    """
    np.empty(31 * 2**20, dtype=np.uint8)
