"""Minibatches of an ensemble: rows of the joint distribution, permuted responses, dropout masks.

Every member draws from its own generator, in blocks of a few updates, so that what a member sees
depends neither on the other members nor on the length of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev._typing import AnyArray, Index
from sobolev.neural.arrays import Array, Keep, to_device

# Number of updates drawn at once, fewer if their dropout masks would take more bytes than this.
BLOCK, BLOCK_BYTES = 16, 2**25


@dataclass(frozen=True)
class Rows:
    """The rows of a member: positions in the table, and probabilities if they are not equal."""

    index: Index
    p: AnyArray | None = None


@dataclass(frozen=True)
class Batch:
    """The rows of one update: positions, permuted positions, weights and dropout masks.

    Attributes
    ----------
    rows : array (E, N)
        Positions of x and of its response.
    permuted : array (E, N)
        Positions of the responses of the product of the marginals.
    weights : array (E, N)
        Weights that sum to one for each member; zero where a member has fewer rows than the
        largest batch.
    roots : array (E, N)
        Their square roots.
    keeps : list
        Dropout masks (E, C, N, width), or None.
    """

    rows: Array
    permuted: Array
    weights: Array
    roots: Array
    keeps: list[Keep | None]


class _Stream:
    """Rows without end: shuffles of all rows one after the other, or weighted draws.

    ``whole`` gives all rows in their order instead of weighted draws.
    """

    def __init__(self, rows: Rows, rng: np.random.Generator, *, whole: bool = False) -> None:
        self.rows, self.rng, self.whole = rows, rng, whole
        self.cumulated = None if rows.p is None else np.cumsum(rows.p / rows.p.sum())
        self.left = np.empty(0, dtype=np.int64)

    def take(self, n: int) -> Index:
        if self.whole:
            return np.tile(self.rows.index, n // self.rows.index.size)
        if self.cumulated is not None:
            draws = np.searchsorted(self.cumulated, self.rng.random(n), side="right")
            return self.rows.index[np.minimum(draws, self.rows.index.size - 1)]
        while self.left.size < n:
            self.left = np.concatenate([self.left, self.rng.permutation(self.rows.index)])
        taken, self.left = self.left[:n], self.left[n:]
        return taken


class Sampler:
    """Draws the batches of an ensemble.

    Parameters
    ----------
    members : sequence of Rows
    batch_sizes : sequence of int
        One for each member; a member with fewer rows takes them all.
    rngs : sequence of Generator
    dropouts : list of (own, width, rate)
        For each activation whether every copy has a mask of its own, the width and the rate.
    n_copies : int
        Copies of a row.
    device : torch.device, or None for numpy
    """

    def __init__(
        self,
        members: Sequence[Rows],
        batch_sizes: Sequence[int],
        rngs: Sequence[np.random.Generator],
        dropouts: list[tuple[bool, int, float]],
        n_copies: int,
        device: Any,
    ) -> None:
        self.sizes = [min(b, m.index.size) for b, m in zip(batch_sizes, members, strict=True)]
        self.n = max(self.sizes)
        self.device = device
        self.rows, self.permuted, self.noise = [], [], []
        weights = np.zeros((len(members), self.n), dtype=np.float32)
        for weight, size, member, rng in zip(weights, self.sizes, members, rngs, strict=True):
            # Three streams for each member: rows, permuted responses, dropout.
            of_rows, of_permuted, of_noise = rng.spawn(3)
            # A batch of all weighted rows needs no draws: the weights of the rows are its own.
            whole = member.p is not None and size == member.index.size
            self.rows.append(_Stream(member, of_rows, whole=whole))
            self.permuted.append(_Stream(member, of_permuted))
            self.noise.append(of_noise)
            weight[:size] = member.p if whole else 1 / size
        self.weights = to_device(weights, device)
        self.roots = to_device(np.sqrt(weights), device)
        self.masks = [
            (n_copies if own else 1, width, min(255, round(256 * rate)))
            for own, width, rate in dropouts
        ]
        # A member's masks are those of its own rows, whatever the batches of others.
        per_row = sum(copies * width for copies, width, cut in self.masks if cut)
        self.noise_bytes = [size * per_row for size in self.sizes]

    def batches(self, n: int) -> Iterator[Batch]:
        """The next n batches."""
        most = BLOCK_BYTES // max(1, sum(self.noise_bytes))
        block = max(1, min(BLOCK, most))
        for start in range(0, n, block):
            yield from self._block(min(block, n - start))

    def _block(self, n: int) -> Iterator[Batch]:
        rows, permuted = self._positions(self.rows, n), self._positions(self.permuted, n)
        noise = self._noise(n)
        for step in range(n):
            keeps: list[Keep | None] = []
            begin = 0  # for each row of a batch
            for copies, width, cut in self.masks:
                if not cut:
                    keeps.append(None)
                    continue
                kept = self._kept(noise, step, begin, copies, width, cut)
                keeps.append(Keep(to_device(kept, self.device), 256 / (256 - cut)))
                begin += copies * width
            yield Batch(rows[step], permuted[step], self.weights, self.roots, keeps)

    def _kept(
        self, noise: list[AnyArray], step: int, begin: int, copies: int, width: int, cut: int
    ) -> AnyArray:
        """What is kept of each member's activations, (E, copies, N, width)."""
        kept = np.zeros((len(noise), copies, self.n, width), dtype=bool)
        for member, (own, size) in enumerate(zip(noise, self.sizes, strict=True)):
            part = own[step, begin * size : (begin + copies * width) * size]
            np.greater_equal(part.reshape(copies, size, width), cut, out=kept[member, :, :size])
        return kept

    def _positions(self, streams: list[_Stream], n: int) -> Array:
        found = np.zeros((n, len(streams), self.n), dtype=np.int64)
        for member, (stream, size) in enumerate(zip(streams, self.sizes, strict=True)):
            found[:, member, :size] = stream.take(n * size).reshape(n, size)
        return to_device(found, self.device)

    def _noise(self, n: int) -> list[AnyArray]:
        """Random bytes of each member, (n, bytes of an update); updates use whole words."""
        found = []
        for rng, size in zip(self.noise, self.noise_bytes, strict=True):
            words = -(-size // 8)
            drawn = rng.integers(0, 2**64, size=(n, words), dtype=np.uint64)
            found.append(drawn.view(np.uint8))
        return found
