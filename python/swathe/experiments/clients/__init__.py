"""Clients of experiments: processes of their own, here and on other hosts."""
