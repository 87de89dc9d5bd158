"""The few operations that numpy and torch spell differently, and the threads of both.

The networks are written once, in the operators that numpy arrays and torch tensors share. On the
CPU they run on numpy, whose calls cost a third of torch's for arrays of this size; on other devices
and inside automatic differentiation they run on torch. Nothing here imports torch: where a tensor
comes in, torch is already imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

Array = Any  # a numpy array or a torch tensor


def namespace(array: Array) -> Any:
    """The module, numpy or torch, that an array belongs to."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def to_device(array: Any, device: Any) -> Array:
    """A numpy array as it is when there is no device, or a tensor on the device."""
    return array if device is None else sys.modules["torch"].as_tensor(array).to(device)


def to_numpy(array: Array) -> Any:
    """A tensor of any device as a numpy array."""
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()


def is_module(given: Any) -> bool:
    """Whether an object is a torch module; if torch is not imported, nothing is."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.nn.Module)


def map_arrays(part: Any, function: Callable[[Array], Any]) -> Any:
    """A dataclass with a function applied to each of its arrays, also in lists and in its parts."""
    if isinstance(part, list):
        return [map_arrays(item, function) for item in part]
    if is_dataclass(part) and not isinstance(part, type):
        own = {f.name: map_arrays(getattr(part, f.name), function) for f in fields(part)}
        return replace(part, **own)
    return part if isinstance(part, float | None) else function(part)


class Keep(NamedTuple):
    """A dropout mask: what is kept, and the factor that makes up for the rest."""

    kept: Array
    factor: float


def activation(pre: Array, slope: float, keep: Keep | None) -> tuple[Array, Array]:
    """Values of a (leaky) ReLU with dropout, in place, and its mask: slope times dropout.

    The mask is a constant for automatic differentiation, as it should be: its derivative is zero.
    """
    if not isinstance(pre, np.ndarray):
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


@contextmanager
def one_thread() -> Iterator[None]:
    """Run matrix products on one thread: the same numbers on every machine, and no waiting.

    If torch is imported, its threads are limited, too, and it records no gradients.
    """
    keep_freed_memory()
    torch = sys.modules.get("torch")
    with threadpool_limits(1, user_api="blas"):
        if torch is None:
            yield
            return
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.no_grad():
                yield
        finally:
            torch.set_num_threads(threads)


def keep_freed_memory() -> None:
    """Let the C library keep freed memory up to 32 MiB instead of returning it at once.

    An update frees and requests arrays of about a mebibyte again and again. Freeing one large
    block teaches the GNU allocator, for the rest of the process, not to return such memory to the
    system each time; fetching it anew would double the time of an update. Other allocators ignore
    it.
    """
    np.empty(31 * 2**20, dtype=np.uint8)
