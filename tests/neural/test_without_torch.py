"""Without torch the neural estimators say what to install, and everything else works."""

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


def run(code, *, block=True):
    done = subprocess.run(
        [sys.executable, "-c", (BLOCK if block else "import sys\n") + code],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


STATEMENTS = [
    "from sobolev import NeuralSIC",
    "from sobolev import SobolevRegressor",
    "from sobolev import SobolevClassifier",
    "import sobolev; sobolev.NeuralSIC",
    "import sobolev; sobolev.neural",
    "import sobolev.neural",
]


def test_neural_names_say_what_to_install():
    code = f"""
for statement in {STATEMENTS}:
    try:
        exec(statement)
    except ImportError as error:
        print(error)
"""
    lines = run(code).splitlines()
    assert len(lines) == len(STATEMENTS)
    assert set(lines) == {lines[0]}
    assert "PyTorch" in lines[0]
    assert lines[0].endswith('pip install "sobolev[neural]"')


def test_everything_else_works():
    code = """
import numpy as np
import sobolev
from sobolev import ConvexSIC, sic_test
from sobolev.datasets import make_sinexp
data = make_sinexp(60, 8, random_state=0)
eta = ConvexSIC(lam=0.03).fit(data.data, data.target).feature_importances_
p = sic_test(data.data, data.target, n_permutations=19, random_state=0).pvalue
print(bool(abs(eta.sum() - 1) < 1e-8), 0 < p <= 1, "NeuralSIC" in dir(sobolev))
"""
    assert run(code) == "True True True"


def test_torch_is_imported_by_neural_names_only():
    others = "ConvexSIC, sic_path, sic_test, datasets, plotting, targets, report"
    code = f"""
from sobolev import {others}
print('torch' in sys.modules)
from sobolev import NeuralSIC
print('torch' in sys.modules)
"""
    assert run(code, block=False).split() == ["False", "True"]
