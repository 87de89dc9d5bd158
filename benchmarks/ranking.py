"""Quality and time of rankings, ours beside their peers.

    python benchmarks/ranking.py [--quick] [--seeds N] [--only NAME] [--method NAME]
                                    [--render]

Every finished fit is a line of results/ranking.jsonl at once, keyed by version, settings and seed:
a run that was killed goes on where it stopped. After a change of the code under the same version,
delete the lines that it touches. Times beside ConvexSIC and peak memory, where the fits themselves
have not given them, are lines of results/ranking_costs.jsonl.
"""

from __future__ import annotations

import _common as common

# isort: split
import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _ranking_data import QUICK_TASKS, TASKS, Task
from _ranking_memory import extra_memory
from _ranking_peers import PEERS, missing, version, warm_up
from _ranking_report import Results, core_table, quality_table, render, verdict_text
from _ranking_store import Store, key
from sklearn.linear_model import ElasticNetCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sobolev import ConvexSIC, NeuralSIC, __version__

CORE = ("ConvexSIC", "NeuralSIC", "random forest", "elastic net")
PEER_OF = {peer.name: peer for peer in PEERS}
METHODS = (*CORE, *PEER_OF)
REFERENCE = CORE[0]
# So many seeds of each data set have a time beside the reference's.
TIMED = 5
# The data set of the memory.
LARGEST_SINEXP = {False: "SinExp, n = 500", True: "SinExp, n = 125"}
# A fit of these takes many minutes; the CPU times are measured ones.
WIDE = "plx4720, n = 359"
NOT_RUN = {
    ("Boruta", WIDE): "the first of up to 99 forests takes 24 s",
    ("STG", WIDE): "an epoch takes 0.18 s, the 3,000 of a fit 9 minutes",
    ("LassoNet", WIDE): "an epoch takes 0.07 s, and a path has thousands",
}


# -- one ranking ---------------------------------------------------------------------------------


def make_estimator(method: str, task: Task, y: np.ndarray, seed: int) -> Any:
    """The estimator of a method of the core."""
    if method == "ConvexSIC":
        return ConvexSIC(random_state=seed)
    if method == "NeuralSIC":
        return NeuralSIC(random_state=seed)
    if method == "random forest":
        return common.random_forest(task.trees, seed, classification=y.dtype.kind == "U")
    return make_pipeline(StandardScaler(), ElasticNetCV())


def importances(estimator: Any) -> np.ndarray:
    """What the estimator ranks columns by."""
    if hasattr(estimator, "feature_importances_"):
        return estimator.feature_importances_
    return np.abs(estimator[-1].coef_)


def rank(
    method: str, task: Task, X: np.ndarray, y: np.ndarray, seed: int, *, quick: bool
) -> tuple[np.ndarray, dict[str, Any]]:
    """The scores of the columns, and what the record says of the fit."""
    if method in PEER_OF:
        return PEER_OF[method].scores(X, y, seed, quick=quick), {}
    estimator = make_estimator(method, task, y, seed).fit(X, y)
    lam, rounds = getattr(estimator, "lam_", None), getattr(estimator, "n_rounds_", None)
    return importances(estimator), {"lam": lam, "rounds": rounds}


def prepare(method: str) -> dict[str, str]:
    """Import what a ranking imports; of a peer, say its version."""
    if method in PEER_OF:
        warm_up(PEER_OF[method])
        return {"package": version(PEER_OF[method])}
    if method == "NeuralSIC":
        importlib.import_module("torch")
    return {}


def true_positive_rate(scores: np.ndarray, support: np.ndarray) -> float:
    """The share of the k true features among the first k; ties count by their expectation."""
    k = int(support.sum())
    last = np.sort(scores)[-k]
    above, tied = scores > last, scores == last
    found = support[above].sum() + (k - above.sum()) * support[tied].mean()
    return float(found / k)


def mean_rank(scores: np.ndarray, support: np.ndarray) -> float:
    """The rank, from one, of the only marked column; ties count by their expectation."""
    (own,) = scores[support]
    return float(1 + np.sum(scores > own) + (np.sum(scores == own) - 1) / 2)


def quality(task: Task, scores: np.ndarray, support: np.ndarray) -> dict[str, float]:
    """What a record holds of a ranking."""
    if np.isnan(scores).any():
        raise ValueError("some scores are no numbers")
    measure = true_positive_rate if task.wanted is None else mean_rank
    return {task.measure: measure(scores, support)}


# -- records -------------------------------------------------------------------------------------


def settings(task: Task, method: str, quick: bool) -> dict[str, Any]:
    """What decides a result besides the version and the seed."""
    if method == "random forest":
        return task.options | {"n_trees": task.trees}
    return task.options | ({"quick": True} if quick and method in PEER_OF else {})


def task_key(task: Task, method: str, quick: bool) -> str:
    return key(__version__, task.name, method, settings(task, method, quick))


# -- measuring -----------------------------------------------------------------------------------


def n_seeds(task: Task, method: str, quick: bool) -> int:
    """How many seeds a method gets: the slow peers fewer."""
    if method not in PEER_OF:
        return task.seeds
    if quick:
        return 1
    many, some, few = PEER_OF[method].most
    return min(task.seeds, many if task.seeds > 10 else some if task.seeds > 5 else few)


def obstacle(task: Task, method: str) -> str | None:
    """Why a method does not run on a data set; None if it does."""
    if method == "elastic net" and "n_classes" in task.options:
        return "regression only"
    if (method, task.name) in NOT_RUN:
        return NOT_RUN[method, task.name]
    return missing(PEER_OF[method]) if method in PEER_OF else None


@dataclass(frozen=True)
class Plan:
    """What one draw still lacks: rankings, and times beside the reference's."""

    unranked: list[str]
    untimed: list[str]
    in_turn: bool

    def fits(self, method: str) -> bool:
        """Whether to fit a method; the reference goes with every time."""
        return method in {*self.unranked, *self.untimed, *([REFERENCE] if self.untimed else [])}


def make_plan(
    task: Task, seed: int, methods: Sequence[str], store: Store, *, quick: bool, seeds: int | None
) -> Plan:
    """What is not finished of the methods on one draw."""
    able = [m for m in METHODS if obstacle(task, m) is None]
    wanted = [m for m in able if m in methods and seed < (seeds or n_seeds(task, m, quick))]
    keys = {m: task_key(task, m, quick) for m in able}
    unranked = [m for m in wanted if seed not in store.ranked.get(keys[m], {})]
    # If the core runs as a whole, its own records are times in turn.
    in_turn = all(m in unranked for m in able if m in CORE)
    timed = {REFERENCE, *(CORE if in_turn else ())}
    timed |= {m for m in wanted if seed in store.ratios(keys[m], keys[REFERENCE])}
    timed |= {m for m in wanted if "error" in store.ranked.get(keys[m], {}).get(seed, {})}
    untimed = [m for m in wanted if seed < TIMED and m not in timed]
    return Plan(unranked, untimed, in_turn)


def measure(task: Task, seed: int, plan: Plan, store: Store, *, quick: bool) -> None:
    """Fit what the plan says on one draw, a record for each."""
    X, y, support = task.draw(seed, **task.options)
    reference_seconds = None
    for method in filter(plan.fits, METHODS):
        package = prepare(method)
        wall, cpu = time.perf_counter(), time.process_time()
        found, details = _try(method, task, (X, y, support), seed, quick)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        options = settings(task, method, quick)
        name = {"dataset": task.name, "method": method, "settings": options, "seed": seed}
        if method == REFERENCE:
            reference_seconds = cpu
        if method in plan.unranked:
            times = {"seconds": round(wall, 3), "in_turn": plan.in_turn and method in CORE}
            store.add_ranking(name | found | times | details | package | {"version": __version__})
        if method in plan.untimed and "error" not in found:
            times = {"seconds": cpu, "reference_seconds": reference_seconds}
            store.add_cost({"kind": "time"} | name | times | {"version": __version__})
        print(f"{task.name} · {method} · seed {seed}: {found} in {cpu:.1f} s", flush=True)


def _try(
    method: str, task: Task, drawn: tuple[np.ndarray, ...], seed: int, quick: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The quality of a ranking; where a peer fails, its error."""
    X, y, support = drawn
    try:
        scores, details = rank(method, task, X, y, seed, quick=quick)
        return quality(task, scores, support), details
    except Exception as error:
        if method not in PEER_OF:
            raise
        return {task.measure: None, "error": f"{type(error).__name__}: {error}"[:300]}, {}


def measure_memory(
    tasks: Sequence[Task], methods: Sequence[str], store: Store, quick: bool
) -> None:
    """The memory of each method on one draw of SinExp, in processes of their own."""
    (task,) = (task for task in tasks if task.name == LARGEST_SINEXP[quick])
    for method in methods:
        own = task_key(task, method, quick)
        if own in store.memory or obstacle(task, method) is not None:
            continue
        name = {"dataset": task.name, "method": method, "settings": settings(task, method, quick)}
        taken = {"bytes": extra_memory(method, task.name, quick), "version": __version__}
        store.add_cost({"kind": "memory"} | name | taken)
        print(f"memory · {method}: {taken['bytes'] / 2**20:.0f} MiB", flush=True)


# -- the report ----------------------------------------------------------------------------------


def results(tasks: Sequence[Task], store: Store, quick: bool) -> Results:
    """What the records say of the tasks, by name of task and method."""
    found = Results(tasks, METHODS, CORE, notes={p.name: p.note for p in PEERS})
    memory_task = next(task for task in tasks if task.name == LARGEST_SINEXP[quick])
    for method in METHODS:
        for task in tasks:
            own, name = task_key(task, method, quick), (task.name, method)
            found.records[name] = store.ranked.get(own, {})
            found.ratios[name] = list(store.ratios(own, task_key(task, REFERENCE, quick)).values())
            found.costs[name] = list(store.timed.get(own, {}).values())
            if not found.records[name] and (reason := obstacle(task, method)) is not None:
                found.reasons[name] = reason
        found.memory[method] = store.memory.get(task_key(memory_task, method, quick))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("Quality and time of rankings.")
    parser.add_argument("--seeds", type=int, help="seeds of each data set and method")
    parser.add_argument("--method", metavar="NAME", help="only methods with NAME in their names")
    parser.add_argument("--render", action="store_true", help="only write the tables")
    args = parser.parse_args(argv)
    folder = common.output_folder(args)
    tasks = QUICK_TASKS if args.quick else TASKS
    methods = [m for m in METHODS if args.method is None or args.method.lower() in m.lower()]
    if not methods:
        raise SystemExit(f"--method {args.method}: choose among {'; '.join(METHODS)}")
    store = Store(folder / "results")
    for task in [] if args.render else common.choose(tasks, args.only):
        most = args.seeds or max(n_seeds(task, m, args.quick) for m in methods)
        for seed in range(most):
            plan = make_plan(task, seed, methods, store, quick=args.quick, seeds=args.seeds)
            try:
                if plan.unranked or plan.untimed:
                    measure(task, seed, plan, store, quick=args.quick)
            except FileNotFoundError as error:  # of the real data
                print(f"{task.name} is left out: {error}")
    if args.only is None and not args.render:
        # The processes take a second or more each: a quick run starts two.
        measure_memory(tasks, methods[:1] if args.quick else methods, store, args.quick)
    found = results(tasks, store, args.quick)
    section = render(found, __version__)
    common.write_section(folder / "RESULTS.md", "ranking", section)
    if folder == common.FOLDER:
        for path in (folder.parent / "README.md", folder.parent / "docs" / "choosing.md"):
            common.write_section(path, "ranking", core_table(found))
        peers = f"{quality_table(found)}\n\n{verdict_text(found)}"
        common.write_section(folder.parent / "docs" / "comparison.md", "peers", peers)
    print(section)


if __name__ == "__main__":
    main()
