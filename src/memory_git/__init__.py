"""Version control for what AI agents know."""

__version__ = "0.1.0"
