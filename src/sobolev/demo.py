"""``sobolev demo``: the whole analysis of a table, from the ranking to the report."""

from __future__ import annotations

import shlex
import shutil
import sys
import sysconfig
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sobolev import HRTSelector, audit
from sobolev._numbers import shown_pvalue
from sobolev._progress import listening
from sobolev.cli.output import FILES, choose_folder, save
from sobolev.cli.terminal import Reporter
from sobolev.datasets import make_sinexp
from sobolev.inference import AuditResult
from sobolev.report import SelectionResult, make_result
from sobolev.tables import Prepared, prepare, write_table

FDR, SHOWN = 0.1, 12
# Plain names for the columns of the diabetes table; "sex" and "age" are plain already.
DIABETES = {
    "bmi": "body mass index",
    "bp": "blood pressure",
    "s1": "total cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "glucose",
}


@dataclass(frozen=True)
class Example:
    """A table for the demonstration.

    Attributes
    ----------
    name : str
        Name of the data, and of the file that it is written to.
    introduction : str
        What the table is, in a few lines.
    table : DataFrame
        The features and the target.
    target : str
        The column to explain.
    truth : frozenset of str or None
        The features that matter, if they are known.
    """

    name: str
    introduction: str
    table: pd.DataFrame
    target: str
    truth: frozenset[str] | None = None


def simulated(n_samples: int, seed: int) -> Example:
    """50 simulated columns, six of which matter."""
    data = make_sinexp(n_samples, shuffle_features=True, random_state=seed, as_frame=True)
    table = data.data.assign(y=data.target)
    introduction = (
        f"SinExp, simulated: {n_samples} rows and {data.data.shape[1]} columns in random order, "
        "correlated by 0.5.\n"
        "y = sin(x1 (x1 + x2)) · cos(x3 + x4 x5) · sin(exp(x5) + exp(x6) − x2) + noise\n"
        "Only x1 to x6 matter. Which columns does the test select?"
    )
    truth = frozenset(str(name) for name in data.feature_names[data.support])
    return Example("sinexp", introduction, table, "y", truth)


def diabetes() -> Example:
    """Patients with diabetes: ten measurements and how the disease went on, from scikit-learn."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(as_frame=True, scaled=False)
    table = data.data.rename(columns=DIABETES).assign(progression=data.target)
    introduction = (
        f"Diabetes (Efron et al. 2004, from scikit-learn): {len(table)} patients, "
        f"{data.data.shape[1]} measurements,\nand the progression of the disease one year later.\n"
        "Which measurements matter for it, given all others? Here nobody knows the truth."
    )
    return Example("diabetes", introduction, table, "progression")


def run_demo(
    example: Example, *, seed: int, repeats: int, out: Path | None, command: str
) -> SelectionResult:
    """Test, audit and report an example as ``sobolev select --audit`` does.

    Parameters
    ----------
    example : Example
    seed : int
        Seed of the test and of the audit.
    repeats : int
        Number of planted responses of the audit.
    out : Path or None
        Folder for the results; by default sobolev-demo, with a number if that one is taken.
    command : str
        The command that asked for the demonstration; only the same one replaces its results.

    Returns
    -------
    SelectionResult
    """
    begin, console = time.perf_counter(), Console(highlight=False)
    file = f"{example.name}.csv"
    folder = choose_folder(out, "sobolev-demo", command, (*FILES, file))
    console.print(Text(example.introduction + "\n"))
    data = prepare(example.table, [example.target])
    selector = HRTSelector(fdr=FDR, random_state=seed, n_jobs=-1)
    with Reporter(quiet=False) as reporter, listening(reporter), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the headline and the report say what they say
        reporter.stage("testing")
        selector.fit(data)
    table = selector.summary()
    print_table(console, table, example.truth)
    console.print(Text(selected_sentence(table, example.truth), style="bold"))
    with Reporter(quiet=False) as reporter, listening(reporter):
        measured = audit(
            HRTSelector(fdr=FDR), data, n_repeats=repeats, n_jobs=-1, random_state=seed
        )
        reporter.stage("report")
        result = finish(example, data, selector, measured, command, time.perf_counter() - begin)
        written = save(result, folder)
        write_table(example.table, folder / file)
    console.print(Text(f"Audit: {measured.verdict}"))
    for line in (
        f"Report: {written['report.html']}, to be opened in a browser",
        f"Data:   {folder / file}",
        "\nNext, with a file and a column of your own:",
        f"  {own_command()} select FILE.csv --target COLUMN",
    ):
        console.print(Text(line), soft_wrap=True)
    return result


def finish(
    example: Example,
    data: Prepared,
    selector: Any,
    measured: AuditResult,
    command: str,
    seconds: float,
) -> SelectionResult:
    """Everything that the report shows."""
    facts = {"name": f"{example.name}.csv"}
    if example.truth is not None:
        facts["truth"] = f"only {', '.join(sorted(example.truth))} matter"
    return make_result(
        selector,
        data,
        data.response,
        targets=data.targets,
        data=facts,
        settings={"command": command},
        seconds=seconds,
        audit=measured,
    )


def selected_sentence(table: pd.DataFrame, truth: frozenset[str] | None) -> str:
    """What was selected, and how much of it is right if that is known."""
    found = list(table.loc[table["selected"], "feature"])
    said = (
        f"Selected at a false discovery rate of {100 * FDR:g} %: {', '.join(found) or 'nothing'}."
    )
    if truth is None:
        return said
    false = len(set(found) - truth)
    return (
        f"{said} That is {len(truth & set(found))} of the {len(truth)} columns that matter, and "
        f"{false or 'no'} false {'one' if false == 1 else 'ones'}."
    )


def print_table(console: Console, table: pd.DataFrame, truth: frozenset[str] | None) -> None:
    """The first rows of the summary, with the truth beside them if it is known."""
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    view.add_column("", justify="right", style="dim")
    view.add_column("feature")
    for header in ("importance", "p", "q"):
        view.add_column(header, justify="right", no_wrap=True)
    view.add_column("selected")
    if truth is not None:
        view.add_column("truth")
    shown = table.head(max(SHOWN, int(table["selected"].sum())))
    for place, (_, row) in enumerate(shown.iterrows(), start=1):
        view.add_row(
            str(place),
            Text(row["feature"]),
            f"{row['importance']:.4f}",
            *(shown_pvalue(row[name]) for name in ("pvalue", "qvalue")),
            "yes" if row["selected"] else "",
            *([] if truth is None else ["matters" if row["feature"] in truth else "noise"]),
            style="bold" if row["selected"] else "",
        )
    console.print(view)
    if len(table) > len(shown):
        console.print(Text(f"… and {len(table) - len(shown)} more, not selected.", "dim"))


def own_command() -> str:
    """How to call this program here: by its name if the shell finds it, else by its path."""
    name = "sobolev.exe" if sys.platform == "win32" else "sobolev"
    script = Path(sysconfig.get_path("scripts")) / name
    if not script.exists():
        return shlex.join([sys.executable, "-m", "sobolev"])
    found = shutil.which("sobolev")
    if found is not None and Path(found).resolve() == script.resolve():
        return "sobolev"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))
