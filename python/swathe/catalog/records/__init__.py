"""What the catalogue holds, as plain values."""
