"""Export of traces for other programs."""
