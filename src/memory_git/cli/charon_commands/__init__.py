"""The commands of `charon`, a module each, imported when called."""
