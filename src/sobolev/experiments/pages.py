"""Pages of results, made from the files of records: no number is typed by hand.

    python -m sobolev.experiments.pages [FOLDER]

renews the pages of a folder (``docs/results`` by default) from its ``data/*.jsonl``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sobolev._files import write_atomic
from sobolev.experiments import EXPERIMENTS, Experiment, Record, load_experiment, read_records
from sobolev.experiments._engine import Task, record_key
from sobolev.experiments._progress import in_words
from sobolev.experiments._tables import markdown_table


def records_file(folder: Path, name: str) -> Path:
    """Where the records of an experiment are kept."""
    return folder / "data" / f"{name}.jsonl"


def write_page(folder: Path, name: str) -> str | None:
    """Write the page of an experiment and its figures.

    Parameters
    ----------
    folder : Path
        Where the pages go; the records are in ``data`` below.
    name : str
        One of ``EXPERIMENTS``.

    Returns
    -------
    str or None
        The page, None if there are no records.
    """
    records = latest(read_records(records_file(folder, name)))
    if not records:
        return None
    experiment = load_experiment(name)
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
    names = [name for name in EXPERIMENTS if (folder / f"{name}.md").exists()]
    rows = []
    for name in names:
        experiment = load_experiment(name)
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
`data` folder by `sobolev reproduce`, which goes on where it was stopped.

{listed}

```{{toctree}}
:hidden:

{entries}
```
""",
    )


def latest(records: Sequence[Record]) -> list[Record]:
    """Records of the version that was run last, in the order of seeds; versions are not mixed."""
    if not records:
        return []
    version = records[-1]["version"]
    found = [record for record in records if record["version"] == version]
    return sorted(found, key=lambda record: (record["seed"], record_key(record)))


def basis(experiment: Experiment, records: Sequence[Record]) -> str:
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
    experiment = load_experiment(name)
    command = f"sobolev reproduce {name}"
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


def write_pages(folder: Path, names: Sequence[str] = EXPERIMENTS) -> list[str]:
    """Write the pages that have records, and the index; the names of those written."""
    written = [name for name in names if write_page(folder, name) is not None]
    if written:
        write_index(folder)
    return written


if __name__ == "__main__":
    print("\n".join(write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results"))))
