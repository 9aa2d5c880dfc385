"""What experiments give: results, figures, reports."""
