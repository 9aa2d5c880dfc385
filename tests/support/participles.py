"""Names that are participles: they say what was done to a thing, not what it is."""

import re

IRREGULAR = re.compile(
    "(?:mis|over|re|un|under)?(?:"
    "become|been|begun|bent|bitten|blown|born|bought|broken|brought|built|burnt|came|caught|chosen|"
    "come|dealt|done|drawn|driven|eaten|fallen|fed|felt|flown|forbidden|forgotten|fought|found|"
    "frozen|gave|given|gone|got|grown|heard|held|hidden|hung|kept|known|laid|led|lent|lost|made|"
    "meant|met|paid|proven|ran|ridden|risen|said|seen|sent|shaken|shown|shrunk|sold|sought|spent|"
    "spoken|spun|stolen|stood|struck|sunk|sworn|taken|taught|thought|thrown|told|torn|understood|"
    "went|withdrawn|withheld|won|worn|woven|written|"
    "beaten|bred|fled|forgiven|mistaken|shot|slept|stuck|swept|swung)"
)
"""Participles that do not end in -ed. Words that are also nouns, adjectives or stems of verbs are
none: bound, cut, left, put, read, run, set, split, spread."""
REGULAR = re.compile(".+ed")
OTHERS = re.compile(
    "bed|bleed|breed|embed|exceed|feed|heed|hundred|indeed|need|proceed|red|seed|shed|speed|succeed|"
    "unknown"
)
"""Words that end as participles do, and are none."""
STATES = frozenset(("are", "can", "had", "has", "have", "is", "was", "were"))
"""A name that begins with one of these says whether something is so: `is_closed`."""


def words_of(name: str) -> list[str]:
    """Return the words of a name in snake case or camel case, in lower case, without digits."""
    words = re.split(r"[_\d]+|(?<=[a-z])(?=[A-Z])", name)
    return [word.lower() for word in words if word]


def is_participle(name: str) -> bool:
    """Check whether the last word of a name is a participle, but for names as `is_closed`."""
    words = words_of(name)
    if not words or words[0] in STATES:
        return False
    patterns = (IRREGULAR, REGULAR)
    ends_in_one = any(pattern.fullmatch(words[-1]) for pattern in patterns)
    return ends_in_one and not OTHERS.fullmatch(words[-1])
