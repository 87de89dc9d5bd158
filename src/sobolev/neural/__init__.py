"""Neural SIC: critics, their training, and the estimators on top. Needs PyTorch."""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        'the neural estimators need PyTorch: pip install "sobolev[neural]"'
    ) from error

from sobolev.neural.critics import BigCritic, BilinearCritic, DenseNetwork, SmallCritic
from sobolev.neural.estimator import NeuralSIC
from sobolev.neural.regression import SobolevClassifier, SobolevRegressor

__all__ = [
    "BigCritic",
    "BilinearCritic",
    "DenseNetwork",
    "NeuralSIC",
    "SmallCritic",
    "SobolevClassifier",
    "SobolevRegressor",
]
