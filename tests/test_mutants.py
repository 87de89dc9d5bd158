"""The tool that changes one operator at a time: what it changes, and what it leaves alone."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("_tool_mutants", ROOT / "tools" / "mutants.py")
mutants = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutants)


def changes(text):
    return {m.diff.partition("->")[2].strip() for m in mutants.mutants_of("m", text)}


def test_operators_and_numbers_are_changed():
    assert changes("y = a + b") == {"y = a - b"}
    assert changes("y = a < b") == {"y = a <= b", "y = a >= b"}
    assert changes("y = not a and b") == {"y = a and b", "y = not a or b"}
    assert changes("y *= -a") == {"y /= -a", "y *= a"}
    assert changes("y = np.maximum(min(a, 0.0), 3)") == {
        "y = np.minimum(min(a, 0.0), 3)",
        "y = np.maximum(max(a, 0.0), 3)",
        "y = np.maximum(min(a, 1.0), 3)",
        "y = np.maximum(min(a, 0.0), 4)",
    }
    assert changes("y = x[a:b]") == {"y = x[a + 1:b]", "y = x[a:b - 1]"}
    assert changes("# é\ny = 'ü' + a  # ö") == {"y = 'ü' - a  # ö"}


def test_messages_annotations_and_other_constants_are_left_alone():
    text = """
def f(x: "int | None", y: Literal[0] = True) -> Literal[1]:
    'Up to 1.'
    z: Literal[1] = 0.5
    raise ValueError("got" + str(1))
"""
    assert changes(text) == set()


def test_every_module_has_tests_that_exist():
    for module, tests in mutants.TESTS.items():
        assert (ROOT / "src" / "sobolev" / f"{module}.py").is_file()
        assert all((ROOT / "tests" / name).is_file() for name in tests)
