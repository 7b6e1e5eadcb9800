"""Takes a database of the original Lethe in: read, verified by its rules, and written in ours (5-lethe, legacy baseline)."""
