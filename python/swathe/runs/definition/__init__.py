"""What a run is: its settings, and how its arrays are divided."""
