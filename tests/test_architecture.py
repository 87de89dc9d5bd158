"""The rooms of the package: which may import which, without cycles and without private names."""

import ast
from pathlib import Path

import pytest

import sobolev

ROOT = Path(sobolev.__file__).parent
#: Each room may import the rooms before it, and the root modules.
ORDER = [
    "convex",
    "neural",
    "conditionals",
    "tables",
    "inference",
    "knockoffs",
    "storage",
    "streaming",
    "datasets",
    "plotting",
    "report",
    "cli",
]
#: Rooms that must not know of each other although the order would allow it.
APART = {
    "neural": {"convex"},
    "tables": {"convex", "neural", "inference", "knockoffs"},
    "streaming": {"neural", "conditionals", "inference", "knockoffs"},
    "datasets": set(ORDER),
}
#: The front doors of the package, which know all rooms.
FRONT = {"__init__", "__main__", "demo"}


def room_of(path):
    """The folder of a module, or its own name if it stands in the root."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def imports(path):
    """Modules and names that a file takes from the package, lazy imports included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sobolev":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "sobolev":
                    yield alias.name, None


def targets(module, name):
    """Rooms that an import reaches: `from sobolev import X` reaches the home of X."""
    parts = module.split(".")
    if len(parts) > 1:
        return {parts[1]}
    home = sobolev._HOME.get(name, f"sobolev.{name}")
    return {home.split(".")[1]}


def arrows():
    """Pairs (importing room, imported folder) with the files that make them."""
    found = {}
    for path in ROOT.rglob("*.py"):
        source = room_of(path)
        for module, name in imports(path):
            for target in targets(module, name) & set(ORDER) - {source}:
                found.setdefault((source, target), []).append(str(path.relative_to(ROOT)))
    return found


def test_every_folder_has_its_place():
    folders = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(ORDER)


def test_arrows_point_one_way():
    """No cycle between rooms, lazy imports included."""
    wrong = {}
    for (source, target), files in arrows().items():
        if source in FRONT:
            continue
        is_root = source not in ORDER
        if is_root or ORDER.index(target) > ORDER.index(source) or target in APART.get(source, ()):
            wrong[source, target] = files
    assert not wrong


def test_root_modules_have_no_cycle():
    names = {path.stem for path in ROOT.glob("*.py")} - FRONT
    needs = {
        name: {
            room
            for module, what in imports(ROOT / f"{name}.py")
            for room in targets(module, what)
            if room in names and room != name
        }
        for name in names
    }
    while needs:
        free = [name for name, rest in needs.items() if not rest]
        assert free, f"a cycle among {sorted(needs)}"
        needs = {n: rest - set(free) for n, rest in needs.items() if n not in free}


def test_no_private_name_of_another_room_is_taken():
    taken = []
    for path in ROOT.rglob("*.py"):
        for module, name in imports(path):
            parts = module.split(".")
            own = len(parts) > 1 and parts[1] == room_of(path)
            private = [
                p for p in (*parts[2:], name or "") if p.startswith("_") and p != "__version__"
            ]
            if private and not own:
                taken.append(f"{path.relative_to(ROOT)}: {module}.{name}")
    assert taken == []


def test_the_critic_is_made_by_default_only():
    """The tests and knockoffs ask for critics of their own only where a default is made.

    The test of independence takes its default family of kernels, the others ConvexSIC.
    """
    taken = {
        (str(path.relative_to(ROOT)), module, name)
        for folder in ("inference", "knockoffs")
        for path in (ROOT / folder).rglob("*.py")
        for module, name in imports(path)
        if module.split(".")[1:2] in (["convex"], ["neural"])
    }
    assert {name for _, _, name in taken} <= {
        "ConvexSIC",
        "NeuralSIC",
        "KernelCritic",
        "kernel_family",
        "response_bases",
    }


@pytest.mark.parametrize("line", ["from sobolev.cli import app", "import sobolev.report.html"])
def test_a_wrong_arrow_would_be_seen(line, tmp_path):
    """The reader of imports finds lazy ones, too."""
    file = tmp_path / "late.py"
    file.write_text(f"def f():\n    {line}\n", encoding="utf-8")
    ((module, name),) = imports(file)
    assert targets(module, name) <= {"cli", "report"}
