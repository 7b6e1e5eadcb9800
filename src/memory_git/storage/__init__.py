"""The engines and the tables: the only SQL in the tree (2-architecture)."""
