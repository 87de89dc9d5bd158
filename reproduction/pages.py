"""Pages of results, made from the files of records: no number is typed by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduction import PAPER, ROOT, load_study
from reproduction.engine import Record, Task, flat, latest, read_records
from reproduction.markdown import markdown_table
from reproduction.progress import in_words
from sobolev._files import write_atomic

# Studies that the README quotes, a row for each.
EVIDENCE = ("certificate", "hrt", "first_try")


def home(name: str, out: Path | None = None) -> Path:
    """The folder of a study's pages: a given one, or that of the published pages."""
    if out is not None:
        return out
    return ROOT / "docs" / "results" if name in PAPER else ROOT / "reproduction"


def records_file(folder: Path, name: str) -> Path:
    """Where the records of a study are kept."""
    return folder / "data" / f"{name}.jsonl"


def write(name: str, out: Path | None = None) -> str | None:
    """Write the pages of a study.

    Parameters
    ----------
    name : str
        One of ``reproduction.STUDIES``.
    out : Path or None
        Where the pages go and the records are, in ``data`` below. None writes the published pages:
        the parts that other pages quote are renewed, too.

    Returns
    -------
    str or None
        The page, None if there are no records.
    """
    if name in PAPER:
        page = write_page(home(name, out), name)
        if page is not None:
            write_index(home(name, out))
        return page
    study = load_study(name)
    rows = rows_of(name, out)
    if not rows:
        return None
    section = study.render(rows)
    if out is not None:  # the pictures of other runs stand beside the page
        section = section.replace("](../docs/", "](")
    write_section(home(name, out) / "RESULTS.md", name, section)
    if hasattr(study, "save_picture"):
        study.save_picture(rows, ROOT / "docs" if out is None else out)
    if out is None and hasattr(study, "quoted"):
        for (file, place), text in study.quoted(rows).items():
            write_section(ROOT / file, place, text)
    if out is None and name in EVIDENCE:
        write_section(ROOT / "README.md", "evidence", evidence())
    return section


def evidence() -> str:
    """The table of the README: a question, what was measured and the page with the rest."""
    rows = [load_study(name).evidence(rows_of(name)) for name in EVIDENCE]
    return markdown_table(["question", "measured", "more"], rows, numbers=False)


def rows_of(name: str, out: Path | None = None) -> list[Record]:
    """The records of a study, and of those that it needs, as rows; ``study`` says of which."""
    rows = []
    for each in (name, *getattr(load_study(name), "NEEDS", ())):
        records = latest(read_records(records_file(home(each, out), each)))
        rows += [flat(record) | {"study": each} for record in records]
    return rows if any(row["study"] == name for row in rows) else []


def write_section(path: Path, name: str, body: str) -> None:
    """Put ``body`` between the markers of a section of a Markdown file, all at once."""
    start, end = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    section = f"{start}\n{body.strip()}\n{end}"
    text = path.read_text() if path.exists() else "# Benchmark results\n"
    if start in text and end in text:
        before, rest = text.split(start, 1)
        text = before + section + rest.split(end, 1)[1]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    write_atomic(path, text)


# -- the experiments of the paper ----------------------------------------------------------------


def write_page(folder: Path, name: str) -> str | None:
    """Write the page of an experiment of the paper and its figures; None without records."""
    records = latest(read_records(records_file(folder, name)))
    if not records:
        return None
    experiment = load_study(name)
    body = with_pictures(experiment.page(records, folder), folder)
    text = "\n".join(
        part.strip() + "\n"
        for part in (f"# {experiment.TITLE}", basis(experiment, records), body, made(name, records))
        if part.strip()
    )
    write_atomic(folder / f"{name}.md", text)
    return text


def write_index(folder: Path) -> None:
    """Write the list of the pages that are there."""
    names = [name for name in PAPER if (folder / f"{name}.md").exists()]
    rows = []
    for name in names:
        experiment = load_study(name)
        records = latest(read_records(records_file(folder, name)))
        title = f"[{experiment.TITLE}]({name}.md)"
        rows.append([title, *experiment.summary(records), f"{len(records):,}"])
    header = ["experiment", "found", "beside it", "goal", "records"]
    listed = markdown_table(header, rows, numbers=False)
    entries = "\n".join(names)
    write_atomic(
        folder / "index.md",
        f"""# Results

The experiments of the paper, run with this package. Every page is made from the records in its
`data` folder by `python -m reproduction paper`, which goes on where it was stopped.

{listed}

```{{toctree}}
:hidden:

{entries}
```
""",
    )


def basis(experiment: Any, records: Sequence[Record]) -> str:
    """A note if not all repetitions are there."""
    planned = experiment.tasks(False)
    n_repeated = Counter(_settings_key(task) for task in planned)
    done = Counter(_settings_key(_task(record)) for record in records)
    full = all(done[key] >= count for key, count in n_repeated.items())
    if full:
        return ""
    counts = [done[key] for key, count in n_repeated.items() if count > 1 and done[key]]
    foreign = sum(count for key, count in done.items() if key not in n_repeated)
    if foreign:
        return f"```{{note}}\nA smaller setting, to try it out: {len(records)} records.\n```"
    if not counts:
        return "```{note}\nNo repetition is finished yet.\n```"
    some = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return (
        f"```{{note}}\nNot the full run yet: {len(records):,} of {len(planned):,} records, "
        f"{some} of {experiment.REPETITIONS} repetitions.\n```"
    )


def made(name: str, records: Sequence[Record]) -> str:
    """How to get these figures, and what it takes."""
    experiment = load_study(name)
    command = f"python -m reproduction {name}"
    repetitions = max(record["seed"] for record in records) + 1
    planned = {_settings_key(task) for task in experiment.tasks(False)}
    if not all(_settings_key(_task(record)) in planned for record in records):
        command += " --quick"
    elif repetitions != experiment.REPETITIONS:
        command += f" --repetitions {repetitions}"
    total = sum(record["seconds"] for record in records)
    versions = sorted({record["version"] for record in records})
    machines = sorted({f"{record['cores']} cores, {record['blas']}" for record in records})
    return f"""## How to repeat it

```console
$ {command}
```

{len(records):,} tasks took {in_words(total)} of one core in all, each on one thread, with sobolev
{", ".join(versions)} ({"; ".join(machines)}). The same seed gives the same record.
"""


def with_pictures(body: str, folder: Path) -> str:
    """The page without pictures that could not be drawn yet."""
    kept = [
        line
        for line in body.splitlines()
        if not line.startswith("![") or (folder / line.split("](")[1].rstrip(")")).exists()
    ]
    return "\n".join(kept)


def _task(record: Record) -> Task:
    return Task(record["experiment"], record["settings"], record["seed"])


def _settings_key(task: Task) -> str:
    return Task(task.experiment, task.settings, 0).key
