"""Change one operator or number at a time; count the changes that no test notices.

``make mutants`` runs it. Each mutant is a copy of ``src`` in a temporary folder with one change in
one module, put before the installed package by PYTHONPATH; the tests of the work tree run against
it. The file ``reproduction/data/mutants.json`` keeps every result, so an interrupted run goes on. A
killed mutant is run again if its module or the file of the test that killed it has changed, the
others if any of the tests of the module has. Survivors that compute the same, or differ only where
nothing is promised, are listed with the reason in ``tools/equivalent_mutants.json``.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "reproduction" / "data" / "mutants.json"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.json"
# The fast tests of each module; the examples in its docstrings are added.
TESTS = {
    "inference/multiple_testing": ["inference/test_multiple_testing.py"],
    "inference/orders": ["inference/test_orders.py"],
    "inference/knockoff_filter": ["inference/test_knockoff_filter.py"],
    "inference/studentised": ["inference/test_studentised.py", "inference/test_schemes.py"],
    "inference/schemes": ["inference/test_schemes.py", "inference/test_studentised.py"],
    "inference/null_distribution": ["inference/test_null_distribution.py"],
    "inference/saddlepoint": ["inference/test_saddlepoint.py"],
    "criterion": ["test_criterion.py"],
    "convex/quadratics": ["convex/test_quadratics.py", "convex/test_solvers.py"],
    "convex/solvers": ["convex/test_solvers.py"],
    "knockoffs/statistics": ["knockoffs/test_statistics.py"],
    "knockoffs/s_matrix": ["knockoffs/test_s_matrix.py"],
}
PYTEST = ["-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-n", "0"]
Result = dict[str, Any]
OUTCOMES = ("killed", "timed out", "survived")

COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
NAMES = {"min": "max", "minimum": "maximum", "argmin": "argmax"}
NAMES |= {b: a for a, b in NAMES.items()}


@dataclass(frozen=True)
class Mutant:
    """One change of one module: where, the line before and after, and the whole new text."""

    module: str
    line: int
    diff: str
    text: str


def mutants_of(module: str, text: str) -> list[Mutant]:
    """All mutants of a module that are still Python."""
    found = []
    lines = text.splitlines()
    for node, new in _changes(ast.parse(text)):
        changed = _replaced(text, node, ast.unparse(new))
        try:
            ast.parse(changed)
        except SyntaxError:
            continue
        at = node.lineno - 1
        diff = f"{lines[at].strip()}  ->  {changed.splitlines()[at].strip()}"
        found.append(Mutant(module, node.lineno, diff, changed))
    return found


def _changes(tree: ast.AST) -> Iterator[tuple[Any, ast.AST]]:
    """Pairs of a node and what replaces it; messages and annotations stay."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Raise, ast.JoinedStr)):
            continue
        if isinstance(node, ast.arg):
            continue  # only an annotation
        yield from ((node, new) for new in _replacements(node))
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from _changes(ast.Expression(node.value))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defaults = node.args if isinstance(node, ast.FunctionDef) else ast.Module([], [])
            yield from _changes(ast.Module([ast.Expr(defaults), *node.body], []))  # type: ignore
        else:
            yield from _changes(node)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare(left, [op, *others], comparators):
            for other in COMPARISONS[type(op)]:
                yield ast.Compare(left, [other(), *others], comparators)
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            yield ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in OPERATORS:
            yield ast.AugAssign(target, OPERATORS[type(op)](), value)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield operand
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            if value in (0, 1):
                yield ast.Constant(1 - value)
            elif isinstance(value, int) and value < 10:
                yield ast.Constant(value + 1)
        case ast.Name(name) if name in NAMES:
            yield ast.Name(NAMES[name])
        case ast.Attribute(value, name) if name in NAMES:
            yield ast.Attribute(value, NAMES[name])
        case ast.Slice(lower, upper, step):
            one = ast.Constant(1)
            if upper is not None and not isinstance(upper, ast.Constant):
                yield ast.Slice(lower, ast.BinOp(upper, ast.Sub(), one), step)
            if lower is not None and not isinstance(lower, ast.Constant):
                yield ast.Slice(ast.BinOp(lower, ast.Add(), one), upper, step)


def _replaced(text: str, node: Any, new: str) -> str:
    """The text with other characters in the place of a node, whose offsets count bytes."""
    lines = text.encode().splitlines(keepends=True)
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    whole = text.encode()
    return (whole[:begin] + new.encode() + whole[end:]).decode()


def digest(*parts: str) -> str:
    """A short hash of texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


class Runner:
    """Runs the tests of one module against mutants of it, in a copy of ``src``."""

    def __init__(self, module: str, folder: Path) -> None:
        self.module, self.folder = module, folder
        self.path = folder / "src" / "sobolev" / f"{module}.py"
        self.source = self.path.read_text(encoding="utf-8")
        self.tests = {
            f"tests/{name}": (ROOT / "tests" / name).read_text(encoding="utf-8")
            for name in TESTS[module]
        }
        self.timeout = 300.0

    def examples(self) -> list[str]:
        """The module's own file in the copy, if its docstrings have examples."""
        return [str(self.path)] if ">>>" in self.source else []

    def tests_hash(self, killer: str = "") -> str:
        """Hash of the file of the test that killed a mutant, or of all files of tests."""
        files = [name for name in self.tests if killer.startswith(name)] or self.tests
        return digest(*(self.tests[name] for name in files))

    def check(self) -> None:
        """Raise an error unless the copy is imported and its tests pass unchanged."""
        name = "sobolev." + self.module.replace("/", ".")
        code = f"import {name} as m; print(m.__file__)"
        shown = self._python(["-c", code], write=True).stdout.strip()
        if Path(shown).resolve() != self.path.resolve():
            raise RuntimeError(f"{shown} was imported, not the copy {self.path}.")
        begin = time.perf_counter()
        outcome, _ = self.outcome(write=True)
        if outcome != "survived":
            raise RuntimeError(f"the tests of {self.module} do not pass without a change.")
        self.timeout = 20 + 4 * (time.perf_counter() - begin)

    def run(self, mutant: Mutant) -> tuple[str, str]:
        """What became of a mutant, and the test that killed it."""
        self.path.write_text(mutant.text, encoding="utf-8")
        try:
            return self.outcome()
        finally:
            self.path.write_text(self.source, encoding="utf-8")

    def outcome(self, write: bool = False) -> tuple[str, str]:
        """Whether the tests notice something, and the first test that does."""
        where = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
        try:
            done = self._python([*PYTEST, *where, *self.examples(), *self.tests], write)
        except subprocess.TimeoutExpired:
            return "timed out", ""
        if done.returncode == 0:
            return "survived", ""
        failed = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", done.stdout, re.MULTILINE)
        test = failed[1] if failed else ""
        return "killed", test if test.startswith("tests/") else "examples"

    def _python(self, arguments: list[str], write: bool) -> subprocess.CompletedProcess[str]:
        # Compiled files are written for the unchanged copy only: a mutant of the same size and
        # second would be taken for the one before.
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src")}
        environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        if not write:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=self.timeout,
        )


def run_module(
    module: str, arguments: argparse.Namespace, known: list[Result], keep: Callable[[], None]
) -> None:
    """Run the mutants of one module that have no valid result; results are put into ``known``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
        runner = Runner(module, folder)
        every = mutants_of(module, runner.source)
        keys = {digest(runner.source, m.diff, str(m.line)): m for m in every}
        known[:] = [r for r in known if r["module"] != module or r["key"] in keys]
        valid = {
            r["key"]
            for r in known
            if r["module"] == module
            and (
                r["tests"] == runner.tests_hash(r["killer"])
                or (arguments.trust_killed and r["outcome"] == "killed")
            )
        }
        order = sorted(keys)
        random.Random(f"{arguments.seed} {module}").shuffle(order)
        left = [key for key in order[: arguments.sample] if key not in valid]
        print(f"{module}: {len(keys)} mutants, {len(left)} to run", flush=True)
        if left:
            runner.check()
        for key in left:
            mutant = keys[key]
            outcome, killer = runner.run(mutant)
            if outcome != "killed":
                print(f"  {outcome}: {module}.py:{mutant.line}: {mutant.diff}", flush=True)
            known[:] = [r for r in known if r["key"] != key]
            known.append(
                {"module": module, "line": mutant.line, "diff": mutant.diff, "outcome": outcome}
                | {"killer": killer, "key": key, "tests": runner.tests_hash(killer)}
            )
            keep()


def summary(known: list[Result], explained: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Counts of each module, of mutants killed, timed out, explained and left."""
    counts = {}
    for module in TESTS:
        mine = [r for r in known if r["module"] == module]
        count = {o.replace(" ", "_"): sum(r["outcome"] == o for r in mine) for o in OUTCOMES}
        alive = [r["diff"] for r in mine if r["outcome"] == "survived"]
        count["explained"] = sum(diff in explained.get(module, {}) for diff in alive)
        counts[module] = {"made": len(mine), **count}
    return counts


def write(known: list[Result], explained: dict[str, dict[str, str]]) -> None:
    """Write counts and mutants, one line for each, in a file that is whole or not there."""
    known.sort(key=lambda r: (r["module"], r["line"], r["diff"]))
    counts = json.dumps(summary(known, explained), indent=1)
    rows = ",\n".join(json.dumps(r, ensure_ascii=False) for r in known)
    new = RESULTS.with_suffix(".new")
    new.write_text(f'{{"counts": {counts},\n"mutants": [\n{rows}\n]}}\n', encoding="utf-8")
    new.replace(RESULTS)


def main() -> int:
    """Run the mutants that were asked for; 1 if a survivor has no reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("modules", nargs="*", metavar="module", help=", ".join(TESTS))
    parser.add_argument("--sample", type=int, help="mutants of each module; default: all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument(
        "--trust-killed",
        action="store_true",
        help="after tests were only added: do not run killed mutants again",
    )
    arguments = parser.parse_args()
    unknown = set(arguments.modules) - set(TESTS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(TESTS)}")
    known = json.loads(RESULTS.read_text(encoding="utf-8"))["mutants"] if RESULTS.exists() else []
    explained = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    for module in arguments.modules or TESTS:
        run_module(module, arguments, known, lambda: write(known, explained))
    write(known, explained)
    print("| module | made | killed | timed out | explained | left |\n|---|---|---|---|---|---|")
    left = 0
    for module, c in summary(known, explained).items():
        open_ = c["survived"] - c["explained"]
        left += open_
        print(
            f"| {module} | {c['made']} | {c['killed']} | {c['timed_out']} | {c['explained']} "
            f"| {open_} |"
        )
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main())
