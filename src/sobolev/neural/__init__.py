"""Neural SIC (Section 5 of the paper): critics, their training, and the estimators.

The built-in critics run on numpy. PyTorch is needed for a module of your own, for a GPU, and for
automatic differentiation: ``pip install "sobolev[neural]"``.
"""

from sobolev.neural.critics import BigCritic, BilinearCritic, DenseNetwork, SmallCritic
from sobolev.neural.estimator import NeuralSIC
from sobolev.neural.optimizer import Boosting, EarlyStopping, Optimizer
from sobolev.neural.regression import SobolevClassifier, SobolevRegressor

__all__ = [
    "BigCritic",
    "BilinearCritic",
    "Boosting",
    "DenseNetwork",
    "EarlyStopping",
    "NeuralSIC",
    "Optimizer",
    "SmallCritic",
    "SobolevClassifier",
    "SobolevRegressor",
]
