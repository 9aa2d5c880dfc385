"""Cut one region (`cut`) or many (`cut_many`)."""
