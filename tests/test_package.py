import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import sobolev


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_import_is_light():
    """`import sobolev` loads no numeric library; ConvexSIC loads neither torch nor matplotlib."""
    heavy = "('numpy', 'sklearn', 'torch', 'matplotlib')"
    show = f"print([m for m in {heavy} if m in sys.modules])"
    assert run(f"import sys, sobolev; {show}") == "[]"
    assert run(f"import sys; from sobolev import ConvexSIC; {show}") == "['numpy', 'sklearn']"


@pytest.mark.parametrize("name", sobolev.__all__)
def test_public_names_exist(name):
    assert getattr(sobolev, name) is not None
    assert name in dir(sobolev)


def test_submodules_are_reached_by_attribute():
    assert run("import sobolev; print(sobolev.datasets.make_xor.__name__)") == "make_xor"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = sobolev.NoSuchName


def test_editors_see_every_public_name():
    """The imports for type checkers are the names that are imported when they are used."""
    tree = ast.parse(Path(sobolev.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == sobolev._HOME
    assert {*seen, "__version__"} == set(sobolev.__all__)


@pytest.mark.parametrize("name", sorted(set(sobolev.__all__) - {"__version__"}))
def test_public_names_are_documented_and_typed(name):
    made = getattr(sobolev, name)
    assert ">>> " in inspect.getdoc(made)
    signature = inspect.signature(made.fit if inspect.isclass(made) else made)
    for parameter in list(signature.parameters.values())[inspect.isclass(made) :]:
        assert parameter.annotation is not parameter.empty, parameter.name
    assert signature.return_annotation is not signature.empty
