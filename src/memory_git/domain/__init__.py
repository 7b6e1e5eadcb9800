"""Pure values and decisions: no I/O, no clock, no randomness, no environment (2-architecture)."""
