"""Settings of the archive in the Virtual Observatory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from swathe.portal.setting_types import Identifier, Line, PublicPage

NO_AUTHORITY = "swathe.invalid"
"""Authority of identifiers that are only used on this machine."""


@dataclass(frozen=True)
class ObservatorySettings:
    """Identifier and title of this archive in the Virtual Observatory, and its registry record.

    Attributes:
        authority: Authority of identifiers, `ivo://AUTHORITY/...`: registered, or a domain of
            yours.
        title: Name of the archive, on pages and in its record.
        short_name: Short name of the archive in lists of clients, up to 16 characters.
        publisher: Name of the organisation that publishes the archive.
        contact: Name of who answers questions about it: better of a desk than of a person.
        contact_email: Address of that contact.
        description: What the archive has, in some sentences.
        subjects: Its subjects, as terms of the Unified Astronomy Thesaurus: `sky-surveys`.
        creators: Names of who made the data.
        reference_url: Page about the archive; else the front page of the portal.
        rights: Conditions of use, as the name of a licence.
    """

    authority: Identifier = NO_AUTHORITY
    title: str = "Swathe"
    short_name: Annotated[str, Field(max_length=16, pattern=r"^[ -~]*$")] = ""
    publisher: Line = ""
    contact: Line = ""
    contact_email: Line = ""
    description: Line = ""
    subjects: tuple[Line, ...] = ()
    creators: tuple[Line, ...] = ()
    reference_url: PublicPage = ""
    rights: Line = ""

    @property
    def missing_keys(self) -> list[str]:
        """Return the keys that a registry record needs and that are empty."""
        needs = ("publisher", "contact", "description", "subjects")
        missing = [f"vo.{name}" for name in needs if not getattr(self, name)]
        return ["vo.authority", *missing] if self.authority == NO_AUTHORITY else missing
