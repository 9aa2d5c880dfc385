"""SODA: cutouts at once and by jobs (UWS)."""
