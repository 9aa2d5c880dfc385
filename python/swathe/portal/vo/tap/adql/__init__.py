"""ADQL: syntax, and its translation to SQL."""
