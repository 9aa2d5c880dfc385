"""Events: timestamped lines of what happened, recorded and read."""

from swathe.trace.ulm import Coded, Damaged, Events, read

__all__ = ["Coded", "Damaged", "Events", "read"]
