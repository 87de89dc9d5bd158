"""Columns as users name them on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from sobolev.validation import list_some


def known(asked: Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """The columns that are asked for: by name, several with commas between, or with ``*``.

    Examples
    --------
    >>> from sobolev.tables.names import known
    >>> known(["a,b", "g*"], ["a", "b", "g1", "g2"], "--x")
    ['a', 'b', 'g1', 'g2']
    """
    present, found = set(names), []
    for text in asked:
        whole = [text] if text in present else [part.strip() for part in text.split(",")]
        for part in (part for part in whole if part):
            found += [part] if part in present else _matching(part, names, option)
    return list(dict.fromkeys(found))


def _matching(pattern: str, names: Sequence[str], option: str) -> list[str]:
    if any(sign in pattern for sign in "*?"):
        found = [name for name in names if fnmatchcase(name, pattern)]
        if found:
            return found
    raise ValueError(f"{option}: there is no column {pattern!r}; {hint(pattern, names)}")


def hint(asked: str, names: Sequence[str]) -> str:
    """What to say of a column that does not exist: the nearest name, or some of the names."""
    small = {name.lower(): name for name in names}
    near = get_close_matches(asked.lower(), list(small), n=1)
    if near:
        return f"did you mean {small[near[0]]!r}?"
    if sum(name.replace(".", "").replace("-", "").isdigit() for name in names) > len(names) / 2:
        return "the first line of the file must hold the names of the columns."
    return f"the columns are {list_some([repr(name) for name in names], 8)}."


def parse_group_options(options: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Groups from ``name=column,column`` or from files with such lines, or with a JSON object."""
    groups: dict[str, list[str]] = {}
    for option in options:
        for name, members in _group_lines(option, names):
            if name in groups:
                raise ValueError(f"--groups: the group {name!r} is given twice.")
            groups[name] = known(members, names, f"--groups {name}")
            if not groups[name]:
                raise ValueError(f"--groups: the group {name!r} has no columns.")
    owner: dict[str, str] = {}
    for name, members in groups.items():
        for column in members:
            if column in owner:
                raise ValueError(
                    f"--groups: column {column!r} is in {owner[column]!r} and in {name!r}; groups "
                    "must not overlap."
                )
            owner[column] = name
    return groups


def _group_lines(option: str, names: Sequence[str]) -> list[tuple[str, list[str]]]:
    path = Path(option)
    if "=" in option and not path.is_file():
        return [_group_line(option)]
    if not path.is_file():
        raise ValueError(
            f"--groups {option!r} is neither a file nor of the form name=column,column."
        )
    text = path.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"--groups {option!r} is not valid JSON ({error}).") from error
        if not all(isinstance(members, list) for members in found.values()):
            raise ValueError(f"--groups {option!r} must map each group to a list of columns.")
        return [(str(name), [str(m) for m in members]) for name, members in found.items()]
    lines = [line.strip() for line in text.splitlines()]
    return [_group_line(line) for line in lines if line and not line.startswith("#")]


def _group_line(line: str) -> tuple[str, list[str]]:
    name, sign, members = line.partition("=")
    if not sign or not name.strip():
        raise ValueError(f"--groups: {line!r} is not of the form name=column,column.")
    return name.strip(), [members]
