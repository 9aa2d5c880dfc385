"""TAP 1.1, `/vo/tap`: queries in ADQL, at once or as jobs."""
