"""The built-in critics need no torch; what needs it says what to install."""

import subprocess
import sys

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Blocked())
"""
DATA = """
import numpy as np
from sobolev.datasets import make_sinexp
data = make_sinexp(60, 8, random_state=0)
X, y = data.data, data.target
"""


def run(code, *, block=True):
    done = subprocess.run(
        [sys.executable, "-c", (BLOCK if block else "import sys\n") + DATA + code],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_everything_can_be_imported():
    code = """
from sobolev import *
import sobolev.neural, sobolev.conditionals.neural
eta = ConvexSIC(lam=0.03).fit(X, y).feature_importances_
p = sic_test(X, y, n_permutations=19, random_state=0).pvalue
print(bool(abs(eta.sum() - 1) < 1e-8), 0 < p <= 1, "torch" in sys.modules)
"""
    assert run(code) == "True True False"


NEURAL = """
import tempfile
from pathlib import Path
from sobolev import HRTSelector, NeuralSIC, SobolevClassifier, SobolevRegressor, load, save
from sobolev.neural import EarlyStopping, Optimizer

optimizer = Optimizer(max_iter=20, rounds=2, early_stopping=EarlyStopping())
with tempfile.TemporaryDirectory() as folder:
    for critic in ("bilinear", "small", "big"):
        sic = NeuralSIC(critic=critic, optimizer=optimizer, feature_groups=[[0, 1]], random_state=0)
        sic = load(save(sic.fit(X, y), Path(folder) / critic))
        terms = sic.explain(X, y)
        print(np.allclose(terms.witness, sic.witness(X, y)), sic.risk(X, y).shape == y.shape)
    for cls, response in ((SobolevRegressor, y), (SobolevClassifier, y > 0)):
        model = cls(optimizer=optimizer, lam="auto", cv=2, random_state=0).fit(X, response)
        model = load(save(model, Path(folder) / "model", overwrite=True))
        print(model.predict(X).shape == y.shape, np.all(model.risk(X, response) <= 0))
sic = NeuralSIC(optimizer=optimizer)
found = HRTSelector(sic, random_state=0).fit(X, y)
print(np.isfinite(found.pvalues_).any(), NeuralSIC(random_state=0).fit(X, y).n_iter_ == 1000)
print("torch" in sys.modules)
"""


def test_built_in_critics_do_everything_without_torch():
    assert run(NEURAL).split() == ["True"] * 12 + ["False"]


def test_torch_that_is_installed_is_not_imported_unless_it_is_needed():
    code = """
from sobolev import ConvexSIC, sic_path, sic_test, datasets, plotting, targets, report
"""
    assert run(code + NEURAL, block=False).split() == ["True"] * 12 + ["False"]


NEEDED = [
    "NeuralSIC(critic=lambda d, k: None).fit(X, y)",
    "SobolevRegressor(network=lambda d, k: None).fit(X, y)",
    'NeuralSIC(optimizer=Optimizer(gradient="autograd")).fit(X, y)',
    'NeuralSIC(optimizer=Optimizer(device="cuda")).fit(X, y)',
    "NeuralConditional(epochs=1).fit(X)",
]


def test_what_needs_torch_says_what_to_install():
    code = f"""
from sobolev import NeuralSIC, SobolevRegressor
from sobolev.conditionals import NeuralConditional
from sobolev.neural import Optimizer
for statement in {NEEDED}:
    try:
        exec(statement)
    except ImportError as error:
        print(error)
"""
    lines = run(code).splitlines()
    assert len(lines) == len(NEEDED)
    assert set(lines) == {lines[0]}
    assert "PyTorch" in lines[0]
    assert lines[0].endswith('pip install "sobolev[neural]"')
