"""``sobolev select`` and ``sobolev rank``: read, fit, report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import typer

import sobolev
from sobolev._progress import listening
from sobolev.cli.output import COMMAND, choose_folder, marking, save
from sobolev.cli.terminal import Reporter, print_table
from sobolev.exceptions import ConstantColumnWarning, TargetError
from sobolev.inference import AuditChoice, Forward, HRTSelector, Split, audit_and_choose
from sobolev.inference.auditing import attempt_path
from sobolev.report import SelectionResult, make_result
from sobolev.report.files import result_csv, result_json
from sobolev.report.making import sentence
from sobolev.tables import Prepared, prepare, read_table
from sobolev.tables.columns import MOST_CATEGORIES
from sobolev.validation import list_some

# Number of planted responses of a short audit, and the file that keeps its runs until it is done.
REPEATS, LOG = 20, "audit.jsonl"
# What is said of tests that were interrupted, with the number of orders of the rows.
STOPPED = "Interrupted; orders of the rows tested: {}. The model of the columns was not checked."
# Warnings for programmers, and of constant columns, which were set aside before the fit.
HIDDEN = (DeprecationWarning, FutureWarning, ImportWarning, ConstantColumnWarning)


def make_selector(
    method: str,
    critic: str,
    *,
    seed: int,
    n_jobs: int | None = None,
    fdr: float = 0.1,
    draws: int | None = None,
    scheme: str | None = None,
    test_size: float | None = None,
    conditional: str | None = None,
    copies: str | None = None,
    sampler: str | None = None,
    top: int | None = None,
) -> Any:
    """The selector that the options ask for; they are checked before the file is read."""
    only = {"--test-size": test_size, "--scheme": scheme, "--conditional": conditional}
    for option, value in only.items():
        if method != "hrt" and value is not None:
            raise ValueError(f"{option} belongs to --method hrt, not to {method}.")
    if method == "rank" and copies is not None:
        raise ValueError("--copies belongs to --method hrt and knockoffs, not to rank.")
    if method != "knockoffs" and sampler is not None:
        raise ValueError(f"--sampler belongs to --method knockoffs, not to {method}.")
    if method == "rank" and draws is not None:
        raise ValueError("--draws belongs to --method hrt and knockoffs, not to rank.")
    if not 0 < fdr < 1:
        raise ValueError(f"--fdr {fdr:g} must lie between 0 and 1, such as 0.1.")
    if test_size is not None and not 0 < test_size <= 0.9:
        raise ValueError(f"--test-size {test_size:g} must lie between 0 and 0.9, such as 0.5.")
    threads = -1 if n_jobs is None else n_jobs
    model = (sobolev.NeuralSIC if critic == "neural" else sobolev.ConvexSIC)(n_jobs=threads)
    if method == "rank":
        return model.set_params(n_features_to_select=top, random_state=seed)
    options: dict[str, Any] = {"fdr": fdr, "random_state": seed}
    if copies is not None:
        options["copies"] = str(copies)
    if method == "hrt":
        options["conditional"] = "auto" if conditional is None else str(conditional)
        kind = Split if scheme == "split" else Forward
        test = kind() if test_size is None else kind(test_size=test_size)
        repeats = "auto" if draws is None else draws
        return HRTSelector(model, scheme=test, n_repeats=repeats, n_jobs=threads, **options)
    options["sampler"] = "auto" if sampler is None else str(sampler)
    return sobolev.KnockoffSelector(model, n_draws=draws or 1, n_jobs=n_jobs, **options)


def check_auditable(method: str) -> None:
    """Only methods that promise a false discovery rate can be audited."""
    if method == "rank":
        raise ValueError(
            "an audit measures a false discovery rate, which --method rank does not control; use "
            "--method hrt or knockoffs."
        )


def run(
    path: Path,
    targets: list[str],
    selector: Any,
    *,
    columns: dict[str, Any],
    reading: dict[str, Any],
    output: dict[str, Any],
    command: str,
    audit: bool = False,
    n_jobs: int | None = None,
) -> None:
    """Read the table, audit the selector if asked, fit it, write and print what it found."""
    begin = time.perf_counter()
    folder = None
    if not output["no_report"]:
        folder = choose_folder(output.get("out"), f"{stem(path)}-sobolev", command)
    with Reporter(output["quiet"]) as reporter:
        reporter.stage("reading")
        data = prepare(read_table(path, **reading), targets, **columns)
        tell_preparation(data, reporter)
        check_table(selector, data)
        if columns.get("blocks_of"):
            keep_order(selector)
        choice, log = None, None if folder is None else folder / LOG
        if audit:
            choice = choose(selector, data, log, reporter, command=command, n_jobs=n_jobs)
            selector = choice.selector
        with warnings.catch_warnings(record=True, action="always") as caught, listening(reporter):
            reporter.stage("fitting")
            is_complete = fit(selector, data)
        said = plain_words(caught)
        if not is_complete and hasattr(answering(selector), "support_"):
            said.insert(0, STOPPED.format(answering(selector).n_repeats_))
        if choice is not None and choice.sentence:
            data.notes.append(choice.sentence)
        for text in said:
            reporter.say(f"warning: {text}")
        reporter.stage("report")
        told = ("reference", "adjust")  # by the result itself
        asked = {name: value for name, value in columns.items() if value and name not in told}
        result = make_result(
            selector,
            data,
            data.response,
            targets=data.targets,
            data={"name": path.name},
            settings=asked | {"command": command},
            warnings=[*data.notes, *said],
            seconds=time.perf_counter() - begin,
            pictures=folder is not None,
            audit=None if choice is None else choice.result,
        )
        if folder is not None:
            written = save(result, folder)
            forget(log, choice)
            if is_complete:
                reporter.say(f"Report: {written['report.html']} (and selection.csv, result.json)")
    if not is_complete:
        what = "ranking" if result.fdr is None else "answer"
        kept = "" if folder is None else f"; the {what} so far is in {folder}"
        raise KeyboardInterrupt(f"before the tests were done{kept}")
    show(result, "json" if output["json"] else output["format"])


def stem(path: Path) -> str:
    """The name of the data, after which the default folder of results is named."""
    return path.name.split(".")[0] or "data"


def check_table(selector: Any, data: Prepared) -> None:
    """Refuse what a ranking cannot do, and tell it which columns belong together."""
    if data.groups is not None and is_ranking(selector):
        raise ValueError(
            "--subject and --blocks-of belong to --method hrt; a ranking takes rows as independent."
        )
    top = selector.get_params(deep=False).get("n_features_to_select")
    n_features = len(data.variables) - len(data.adjusted)
    if top is not None and top > n_features:
        raise ValueError(f"--top {top} is more than the {n_features} features.")
    if is_ranking(selector) and data.adjusted:
        selector.set_params(adjust=[j for name in data.adjusted for j in data.variables[name]])
    if is_ranking(selector) and data.has_groups:
        selector.set_params(feature_groups=dict(data.variables))


def is_ranking(selector: Any) -> bool:
    """Whether the method is rank: a critic alone, without tests."""
    return not hasattr(selector, "fdr")


def keep_order(selector: Any) -> None:
    """Tell the test to keep the order of the rows."""
    if isinstance(selector, HRTSelector):
        selector.set_params(scheme=replace(selector.scheme, shuffle=False))


def fit(selector: Any, data: Prepared) -> bool:
    """Fit the selector; False if it was interrupted after a first ranking or some of the tests."""
    try:
        with explaining_rare_classes(selector, data):
            if is_ranking(selector):
                selector.set_params(target="typed")  # as the response was read
                selector.fit(data.filled(), data.y, **data.beside)
            else:
                selector.fit(data)
    except KeyboardInterrupt:
        if not hasattr(answering(selector), "feature_importances_"):
            raise
        return False
    return True


def answering(selector: Any) -> Any:
    """The selector that was fitted: that of the encoded columns, if there is one."""
    return getattr(selector, "encoded_", selector)


def choose(
    selector: Any,
    data: Prepared,
    log: Path | None,
    reporter: Reporter,
    *,
    command: str,
    n_jobs: int | None,
    repeats: int | None = None,
) -> AuditChoice:
    """Audit the selector, and its alternatives if it fails; says what was tried."""
    try:
        with marking(log, command), listening(reporter), explaining_rare_classes(selector, data):
            choice = audit_and_choose(
                selector,
                data,
                n_repeats=REPEATS if repeats is None else repeats,
                n_jobs=-1 if n_jobs is None else n_jobs,
                random_state=selector.random_state,
                resume=log,
            )
    except KeyboardInterrupt:
        if log is not None and log.exists():
            kept = f"during the audit; {log} keeps the finished runs, the same command goes on"
            raise KeyboardInterrupt(kept) from None
        raise
    if choice.sentence:
        reporter.say(f"note: {choice.sentence}")
    return choice


def forget(log: Path | None, choice: AuditChoice | None) -> None:
    """Remove the files that kept the runs of finished audits."""
    if log is not None and choice is not None:
        for number in range(1, len(choice.audits) + 1):
            attempt_path(log, number).unlink(missing_ok=True)
        log.with_name(COMMAND).unlink(missing_ok=True)


@contextmanager
def explaining_rare_classes(selector: Any, data: Prepared) -> Iterator[None]:
    """Say what to do if a class is missing from the rows of a first fit."""
    try:
        yield
    except TargetError as error:
        if not isinstance(selector, HRTSelector):
            raise
        raise ValueError(
            f"{rarest(data)} so rare that the rows of the first fit may lack one; merge rare "
            "classes, drop them, or use --method knockoffs."
        ) from error


def rarest(data: Prepared) -> str:
    """The rarest classes of the targets with their numbers of rows, to begin a sentence."""
    columns = pd.DataFrame(data.y)
    counts = [columns[name].value_counts() for name in columns]
    found = [
        f"{label!r} ({count} rows)"
        for each in counts
        if len(each) <= MOST_CATEGORIES
        for label, count in each.tail(3)[::-1].items()
    ]
    return f"classes of the target such as {list_some(found, 3)} are" if found else "values are"


def tell_preparation(data: Prepared, reporter: Reporter) -> None:
    """Say which columns were set aside and what was done to the rows."""
    aside = [item for item in data.set_aside if "--exclude" not in item[1]]
    if aside:
        listed = list_some([f"{name} ({reason})" for name, reason in aside], 4)
        noun = "column" if len(aside) == 1 else "columns"
        reporter.say(f"note: {len(aside)} {noun} set aside: {listed}")
    for text in data.notes:
        reporter.say(f"note: {text}")
    if data.response is not None:
        reporter.say(data.response.sentence)


def plain_words(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """The text of each warning once, as a sentence."""
    texts = [str(item.message) for item in caught if not issubclass(item.category, HIDDEN)]
    return list(dict.fromkeys(sentence(text) for text in texts))


def show(result: SelectionResult, format: str) -> None:
    """Print the answer on standard output."""
    if format == "json":
        typer.echo(result_json(result), nl=False)
    elif format == "csv":
        typer.echo(result_csv(result), nl=False)
    else:
        print_table(result)
