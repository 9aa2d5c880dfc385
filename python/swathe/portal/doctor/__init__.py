"""`swathe portal doctor`: what of a portal's settings and surroundings works, and what to do."""

from swathe.portal.doctor.check import Check
from swathe.portal.doctor.doctor import examine

__all__ = ["Check", "examine"]
