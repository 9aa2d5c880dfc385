"""Find regions of arrays by place and time."""
