"""Options of commands that confine programs: user ids, and the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swathe.sandbox import UserIds

if TYPE_CHECKING:
    from swathe.algorithms.group_run import BoxSettings


def parse_users(text: str | UserIds) -> UserIds:
    """Parse user ids: `FIRST` or `FIRST:COUNT`."""
    if isinstance(text, UserIds):
        return text
    try:
        return UserIds.parse(text)
    except ValueError:
        raise typer.BadParameter(f"expected FIRST:COUNT, as 70000:16, found {text!r}") from None


Users = Annotated[
    UserIds | None,
    typer.Option(
        metavar="FIRST:COUNT",
        parser=parse_users,
        show_default=False,
        help="User ids for programs, if started as root; nothing else may run under them.",
    ),
]
Python = Annotated[
    Path | None,
    typer.Option("--python", help="Interpreter for programs; else that of Swathe itself."),
]
Folders = Annotated[
    list[Path] | None,
    typer.Option(
        "--folder", help="Folder that the interpreter needs, as its packages; may be repeated."
    ),
]


def box_settings(
    users: UserIds | None, python: Path | None, folders: list[Path] | None
) -> BoxSettings:
    """Return how programs are confined, as the options say."""
    from swathe.algorithms.box_python import BoxPython
    from swathe.algorithms.group_run import BoxSettings

    if python is None:
        if folders:
            raise typer.BadParameter("goes with --python", param_hint="--folder")
        return BoxSettings(users=users)
    places = [each.absolute() for each in folders or ()]
    return BoxSettings(BoxPython.of(python.absolute(), places), users=users)
