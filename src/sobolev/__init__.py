"""The Sobolev Independence Criterion: which columns matter, with few false discoveries.

Names are imported when they are first used, so that ``import sobolev`` costs nothing and optional
dependencies are asked for only by what needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sobolev._version import __version__

if TYPE_CHECKING:
    from sobolev.cli.doctor import show_versions
    from sobolev.convex import ConvexSIC, sic_path
    from sobolev.inference import HRTSelector, audit, hrt_test, sic_test
    from sobolev.knockoffs import KnockoffSelector
    from sobolev.neural import NeuralSIC, SobolevClassifier, SobolevRegressor
    from sobolev.report import write_report
    from sobolev.storage import load, save

_HOME = {
    "ConvexSIC": "sobolev.convex",
    "HRTSelector": "sobolev.inference",
    "KnockoffSelector": "sobolev.knockoffs",
    "NeuralSIC": "sobolev.neural",
    "SobolevClassifier": "sobolev.neural",
    "SobolevRegressor": "sobolev.neural",
    "audit": "sobolev.inference",
    "hrt_test": "sobolev.inference",
    "load": "sobolev.storage",
    "save": "sobolev.storage",
    "show_versions": "sobolev.cli.doctor",
    "sic_path": "sobolev.convex",
    "sic_test": "sobolev.inference",
    "write_report": "sobolev.report",
}
_MODULES = (
    "conditionals",
    "convex",
    "criterion",
    "critic",
    "datasets",
    "inference",
    "knockoffs",
    "neural",
    "plotting",
    "report",
    "responses",
    "storage",
    "streaming",
    "tables",
    "targets",
)

__all__ = [
    "ConvexSIC",
    "HRTSelector",
    "KnockoffSelector",
    "NeuralSIC",
    "SobolevClassifier",
    "SobolevRegressor",
    "__version__",
    "audit",
    "hrt_test",
    "load",
    "save",
    "show_versions",
    "sic_path",
    "sic_test",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"sobolev.{name}")
    raise AttributeError(f"module 'sobolev' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
