"""The progress bar."""

from __future__ import annotations

import pytest

from swathe.core import progress


@pytest.mark.parametrize(
    ("time_left", "text"), [("1 min 20 s left (1:00 to 1:50)",) * 2, ("", "-:--:--")]
)
def test_the_bar_shows_the_time_left(
    time_left: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "can_show_progress", lambda: True)
    with progress.progress_bar("cutting", True, 10) as show:
        show(3, time_left)
    bar = " ".join(capsys.readouterr().err.split())
    assert bar.startswith("cutting")
    assert f"3/10 {text}" in bar


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_bar("cutting", True, 10) as show:
        show(3, "1 s left")
    assert capsys.readouterr().err == ""
