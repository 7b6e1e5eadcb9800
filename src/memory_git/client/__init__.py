"""Memory for Python programs: the gate embedded, or a running Charon, with the same verbs."""
