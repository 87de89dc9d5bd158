"""The page of the command line: every option is in it, with an example that the program takes."""

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest
import typer

from sobolev.cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "command-line.md"
GROUP = typer.main.get_command(app)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?:text|bash|console|)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def lines(path):
    """The calls of the program in the blocks of a page, as words."""
    blocks = "\n".join(FENCE.findall(path.read_text()))
    calls = [line for line in blocks.splitlines() if line.startswith("sobolev ")]
    return [shlex.split(line.split(" > ")[0], comments=True)[1:] for line in calls]


CALLS = [(path.name, words) for path in PAGES for words in lines(path)]
OPTIONS = [
    (name, option.opts[0])
    for name, command in GROUP.commands.items()
    for option in command.params
    if option.param_type_name == "option"
]


@pytest.mark.parametrize(("page", "words"), CALLS, ids=[" ".join(w) for _, w in CALLS])
def test_the_program_takes_every_example(page, words):
    name, *arguments = [w for w in words if w not in ("COMMAND", "FILE.csv")]
    command = GROUP.commands[name]
    parent = click.Context(GROUP)
    command.make_context(name, arguments, parent=parent)


@pytest.mark.parametrize("option", sorted({option for _, option in OPTIONS}))
def test_every_option_has_an_example(option):
    having = {name for name, each in OPTIONS if each == option}
    assert any(option in words for _, words in CALLS if words[0] in having)
    assert any(option in words for words in lines(PAGE))


def test_the_page_names_every_command():
    text = PAGE.read_text()
    assert all(f"| `{name}` |" in text for name in GROUP.commands)


def test_the_table_of_options_is_that_of_the_program():
    spec = importlib.util.spec_from_file_location("command_line", ROOT / "docs/command_line.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = PAGE.read_text()
    found = text.split("<!-- options:start -->\n")[1].split("\n<!-- options:end -->")[0]
    assert found == script.table().strip()
    listed = {name for names, _ in script.options() for name in names}
    assert {option for _, option in OPTIONS} <= listed
