"""Where the arrays of a run go, and what that costs."""
