"""Names of the original in ours: most stay as they are; what our rules don't allow is given a name that tells where it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from memory_git.domain.errors import Invalid
from memory_git.domain.ids import check_project_id, parse_ref
from memory_git.interchange.identity import clip_bytes, slug
from memory_git.interchange.imported import Findings

_ROOM_BYTES = 80


class RefNames:
    """The refs of one project, under the names that they have here."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._known: dict[str, str] = {}

    def here(self, name: str) -> str:
        """Gives a ref's name here, and warns once where it is another one."""
        if name not in self._known:
            self._known[name] = self._named(name)
        return self._known[name]

    def _named(self, name: str) -> str:
        try:
            return parse_ref(name).name
        except Invalid as refused:
            mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
            words = clip_bytes(_ascii(name), _ROOM_BYTES).strip("-.")
            renamed = f"refs/topics/{words}-{mark}" if words else f"refs/topics/{mark}"
            self._findings.warn(name[:200], "ref_name", f"is {renamed} here: {refused.message}")
            return renamed


def project_here(name: str, renamed: Mapping[str, str]) -> str:
    """Gives a project's name here; raises Invalid `import_project_name` with what to do where it can't be one."""
    wanted = renamed.get(name, name)
    try:
        return check_project_id(wanted)
    except Invalid as refused:
        raise Invalid(
            "import_project_name",
            f"the project {name[:100]!r} can't have that name here ({refused.message}): give it another with --rename",
            project=name[:200],
        ) from None


def _ascii(name: str) -> str:
    plain = slug(name.removeprefix("refs/").replace("/", "."))
    text = "".join(sign for sign in plain if sign.isascii())
    while ".." in text:
        text = text.replace("..", ".")
    return text.removesuffix(".lock").lstrip("._-")
