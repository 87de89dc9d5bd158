"""Neural SIC as a plain torch loop: modules, autograd, double back-propagation, torch.optim.

The peer of the closed form: what a competent user writes from Algorithm 3 of the paper.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn


class Small(nn.Module):
    def __init__(self, d: int, k: int, width: int = 100, dropout: float = 0.3) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d + k, width, bias=False),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, width, bias=False),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, 1, bias=False),
        )

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.layers(torch.cat([x, y], 1)).squeeze(1)


class Big(nn.Module):
    def __init__(self, d: int, k: int, width: int = 100) -> None:
        super().__init__()
        self.x, self.y = self._branch(d, width), self._branch(k, width)
        self.joint = nn.Sequential(self._branch(2 * width, width), nn.Linear(width, 1))

    @staticmethod
    def _branch(n: int, width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(n, width), nn.LeakyReLU(), nn.Linear(width, width), nn.LeakyReLU()
        )

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.joint(torch.cat([self.x(x), self.y(y)], 1)).squeeze(1)


CRITICS = {"small": Small, "big": Big}


def train(
    critic: str,
    X: np.ndarray,
    psi: np.ndarray,
    n_updates: int,
    batch_size: int = 100,
    lam: float = 0.01,
    rho: float = 1.0,
) -> np.ndarray:
    """The importances after ``n_updates`` updates."""
    table, responses = torch.tensor(X, dtype=torch.float32), torch.tensor(psi, dtype=torch.float32)
    n, d = table.shape
    net = CRITICS[critic](d, responses.shape[1])
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.5, 0.999), weight_decay=1e-4)
    eta = torch.full((d,), 1 / d)
    for _ in range(n_updates):
        rows, drawn = torch.randint(n, (batch_size,)), torch.randint(n, (batch_size,))
        x = table[rows].requires_grad_()
        joint, product = net(table[rows], responses[rows]), net(x, responses[drawn])
        (gradient,) = torch.autograd.grad(product.sum(), x, create_graph=True)
        squared = gradient.square().mean(0)
        loss = product.mean() - joint.mean() + 0.5 * rho * product.square().mean()
        loss = loss + 0.5 * lam * (squared / eta).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        with torch.no_grad():
            eta = torch.softmax(eta.log() + 0.1 * 0.5 * lam * squared / eta**2, 0)
    return eta.numpy()
