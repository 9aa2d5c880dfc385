"""Algorithms and subscriptions as the command line shows them: in words."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from swathe.catalog import Catalog
from swathe.catalog.records.subscriptions import Subscription
from swathe.cli.commands.subscription import print_subscription
from swathe.cli.options import open_ends
from swathe.core.errors import SourceError
from swathe.core.format import decimal_size_text
from tests.support.algorithms import LST
from tests.support.fits_frames import Runner


def test_an_algorithm_is_shown_as_it_is_checked(
    run: Runner, tmp_path: Path, catalog: Catalog
) -> None:
    path = tmp_path / "lst.py"
    path.write_text(LST)
    checked = run("algorithm", "check", str(path))
    catalog.add_algorithm("lst-quarter-degree", "1.2", LST.encode(), "bob")
    shown = run("algorithm", "show", "lst-quarter-degree")
    assert shown == f"{checked}owner: bob\n"
    assert "1 GB of memory" in shown
    assert "{" not in shown


def test_the_definition_of_a_portal_is_read() -> None:
    from dataclasses import asdict

    from swathe.algorithms.named_algorithms import show
    from swathe.client.answers import definition_of

    with Catalog.open() as catalog:
        catalog.add_algorithm("lst-quarter-degree", "1.2", LST.encode(), "bob")
    definition = show("lst-quarter-degree").definition
    assert definition_of({"definition": asdict(definition)}, "https://a") == definition
    with pytest.raises(SourceError, match="expected a definition"):
        definition_of({"definition": {"name": 1}}, "https://a")


def test_a_subscription_is_shown_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"parameters": {"q": 2}, "files": {"clim": "a:c.nc"}, "register_as": "day-means"}
    print_subscription(
        Subscription(
            id="s" * 22,
            owner="ann",
            algorithm="lst@1.2",
            state="paused",
            reason="",
            collection="swaths",
            search={"bbox": [-10.0, 35.0, 30.0, 60.0], "time": [53491.0, None]},
            job_options={"algorithm": "lst@1.2", "operation": "algorithm", **options},
            grouping={"by": "day", "least": 1, "most": 288, "wait_s": 21600.0},
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
            until=None,
            events=3,
            webhook=None,
            webhook_fault="",
            mail="ann@mail.example",
            mail_fault="not confirmed",
        )
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"subscription: {'s' * 22}",
        "algorithm: lst@1.2",
        "state: paused",
        "collection: swaths",
        "bbox: -10 35 30 60 degrees (W S E N)",
        "time: 2005-05-01 00:00:00 UTC to ..",
        "groups: by day, 1 to 288 granules; one that is not complete waits 6 h",
        "parameters: q=2",
        "files: clim=a:c.nc",
        "outputs added to: day-means",
        "mail: ann@mail.example (not confirmed)",
        "events: 3",
    ]


def test_ends_of_times_may_be_open() -> None:
    assert open_ends(("2005-05-01", "..")) == ("2005-05-01", None)
    assert open_ends(None) is None


def test_declared_sizes_are_decimal() -> None:
    sizes = (999, 1_000_000_000, 200_000_000, 1_073_741_824)
    assert [*map(decimal_size_text, sizes)] == ["999 B", "1 GB", "200 MB", "1.074 GB"]


def test_a_job_and_an_order_name_the_new_dataset_alike(run: Runner) -> None:
    helps = [run(*words, "--help") for words in (("order",), ("job", "submit"), ("subscribe",))]
    assert all("--register-as" in text and "register_as" not in text for text in helps)
