"""Results of experiments, with figures and reports."""
