"""Applications that write and read runs. Each is a package with a README."""
