"""The commands of `lethe`, a module each, imported when called."""
