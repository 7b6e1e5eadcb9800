"""The forms of ids and names, and what a ref's name says about it (3-model, ids and names)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from memory_git.domain.errors import Invalid

RESERVED_PROJECTS = frozenset({"changesets", "manifests", "projects"})
MAX_MEMORY_ID_BYTES = 1024
MAX_REF_BYTES = 512
SHARED_MAIN = "refs/shared/main"

_PROJECT = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{64}")

RefSpace = Literal["shared", "agents", "sessions", "topics", "repos", "proposals"]
_PARTS: dict[str, int] = {"shared": 1, "agents": 2, "sessions": 2, "topics": 1, "repos": 2, "proposals": 1}


@dataclass(frozen=True, slots=True)
class RefName:
    """A ref's name, taken apart. `owner` is the actor id, topic id, repo or proposal id that it stands under."""

    name: str
    space: RefSpace
    owner: str

    @property
    def is_protected_by_name(self) -> bool:
        """Says whether the name alone makes the ref protected; a flag on the ref may do so too."""
        return self.space == "shared"


def parse_ref(name: object) -> RefName:
    """Takes a ref's name apart.

    >>> parse_ref("refs/agents/builder/main").owner
    'builder'

    Raises Invalid `bad_ref_name`, saying which rule is broken.
    """
    if not isinstance(name, str) or not name:
        raise Invalid("bad_ref_name", "a ref name is a non-empty string", field="ref_name")
    return _parsed(name)


@lru_cache(4_096)
def _parsed(name: str) -> RefName:
    if len(name.encode("utf-8", "replace")) > MAX_REF_BYTES:
        raise Invalid("bad_ref_name", f"a ref name has at most {MAX_REF_BYTES} bytes", field="ref_name")
    root, _, rest = name.partition("/")
    space, _, tail = rest.partition("/")
    if root != "refs" or space not in _PARTS:
        spaces = ", ".join(f"refs/{known}/" for known in _PARTS)
        raise Invalid("bad_ref_name", f"a ref name starts with one of {spaces}", field="ref_name")
    parts = tail.split("/")
    wanted = _PARTS[space]
    if len(parts) != wanted:
        raise Invalid("bad_ref_name", f"refs/{space}/ takes {wanted} component(s) after it", field="ref_name")
    for part in parts:
        if not is_component(part):
            raise Invalid(
                "bad_ref_name",
                "a component of a ref name starts with a letter or digit, then up to 127 of A-Z a-z 0-9 . _ @ + -,"
                " without '..' and not ending in '.lock'",
                field="ref_name",
            )
    return RefName(name, space, parts[0])  # type: ignore[arg-type]


def is_component(text: object) -> bool:
    """Decides whether a text can stand between two slashes of a ref name; actor ids must."""
    return (
        isinstance(text, str)
        and _COMPONENT.fullmatch(text) is not None
        and ".." not in text
        and not text.endswith(".lock")
    )


def check_project_id(project_id: object) -> str:
    """Gives the project id back, or raises Invalid `bad_project_id`."""
    if not isinstance(project_id, str) or not _PROJECT.fullmatch(project_id):
        raise Invalid(
            "bad_project_id",
            "a project id is a-z, 0-9, '.', '_', '-', up to 128, starting with a letter or digit",
        )
    if project_id in RESERVED_PROJECTS:
        raise Invalid("bad_project_id", f"{project_id} is a reserved name")
    return project_id


def is_memory_id(text: object) -> bool:
    """Decides whether a value may name a memory: any string of 1 to 1,024 bytes without control characters."""
    if (
        isinstance(text, str)
        and 0 < len(text) <= MAX_MEMORY_ID_BYTES
        and text.isascii()
        and text.isprintable()
    ):
        return True
    return (
        isinstance(text, str)
        and len(text) > 0
        and (text.isascii() or _is_utf8(text))
        and len(text.encode("utf-8")) <= MAX_MEMORY_ID_BYTES
        and not any(unicodedata.category(character) == "Cc" for character in text)
    )


def is_uuid(text: object) -> bool:
    """Decides whether a value is a UUID of any version, in lower case."""
    return isinstance(text, str) and _UUID.fullmatch(text) is not None


def is_uuid7(text: object) -> bool:
    """Decides whether a value is a UUIDv7 in lower case (RFC 9562 §5.7)."""
    return isinstance(text, str) and _UUID7.fullmatch(text) is not None


def is_digest(text: object) -> bool:
    """Decides whether a value is a SHA-256 digest in lower-case hex."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
