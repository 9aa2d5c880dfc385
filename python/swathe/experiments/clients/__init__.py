"""What experiments run: clients in processes of their own, here and on other hosts."""
