"""Write the table of options: ``python docs/command_line.py`` renews docs/command-line.md."""

import sys
from pathlib import Path

import typer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from reproduction.markdown import markdown_table  # noqa: E402
from reproduction.pages import write_section  # noqa: E402
from sobolev.cli import app  # noqa: E402

PAGE = ROOT / "docs" / "command-line.md"


def options():
    """The subcommands that have an option, by its names and its help."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():
        for option in command.params:
            if option.param_type_name == "option":
                found.setdefault((tuple(option.opts), option.help), []).append(name)
    return found


def table():
    """The options as a table, in the order of the program's own help."""
    rows = [
        [", ".join(f"`{name}`" for name in names), words.replace("|", "\\|"), ", ".join(commands)]
        for (names, words), commands in options().items()
    ]
    return markdown_table(["option", "meaning", "commands"], rows, numbers=False)


if __name__ == "__main__":
    write_section(PAGE, "options", table())
