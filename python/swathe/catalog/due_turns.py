"""Turns of users among what is due to be sent: few at a time for each."""

from __future__ import annotations

from collections import Counter

LOOKS = 16
"""What is looked at for each that is taken, since that of one user may be much."""


class DueTurns:
    """Which of some due things are taken, earliest first."""

    def __init__(self, limit: int, of_a_user: int) -> None:
        """Take the largest number in all, and the largest of one user."""
        self._left, self._of_a_user = limit, of_a_user
        self._counts: Counter[str] = Counter()

    def take(self, owner: str) -> bool:
        """Return whether the next one, of this user, is taken."""
        self._counts[owner] += 1
        is_taken = self._left > 0 and self._counts[owner] <= self._of_a_user
        self._left -= is_taken
        return is_taken
