"""Version control for what AI agents know."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_git.client.client import Client as Client

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Gives `Client`, which is imported only for who asks: the programs start without it."""
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from memory_git.client.client import Client

    return Client
