import subprocess
import sys

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
