"""Reads a folder of Markdown files: one file = one memory (9-repository, files and interchange).

1. Only regular `.md` files up to 1 MiB, in UTF-8; no link is followed, no hidden folder entered; the rest is reported.
2. Front matter is read field by field; a file without one is a memory whose summary is its first non-empty line.
3. A file's `id` names its memory; else its path does. An `id` that an earlier file has makes a new memory.
4. Content over the cap is split by heading, each part linked to the first.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections import Counter
from pathlib import Path

from memory_git.domain.ids import is_memory_id
from memory_git.domain.ops import MAX_NOTE_BYTES, MAX_STRING_BYTES
from memory_git.interchange.fitting import clipped, fit_line, fits_payload, one_line
from memory_git.interchange.front_matter import FrontMatter, read_front_matter
from memory_git.interchange.identity import stable_id
from memory_git.interchange.imported import Findings, Import, Imported, ImportedLink
from memory_git.interchange.markdown_fields import fields_payload
from memory_git.interchange.splitting import split_memory

MAX_FILE_BYTES = 1024 * 1024


def import_markdown(root: Path) -> Import:
    """Gives the memories of a folder, or of one file, in the order of their paths."""
    findings = Findings()
    if root.is_dir():
        paths = _walk(root, findings)
    else:
        root, paths = root.parent, [root.name]
    memories: list[Imported] = []
    links: list[ImportedLink] = []
    claimed: dict[str, str] = {}
    for path in paths:
        text = _read_text(root / path, shown(path), findings)
        memory = _memory(text, shown(path), claimed, findings) if text is not None else None
        if memory is None:
            continue
        parts, part_links = split_memory(memory, findings)
        if not _is_free(parts, claimed) or not all(fits_payload(part.payload) for part in parts):
            findings.skip("file", shown(path), "more than a payload can hold, or an id that is taken")
            continue
        claimed.update((part.memory_id, part.source_file) for part in parts)
        memories += parts
        links += part_links
    return findings.finish(memories, links)


def shown(path: str) -> str:
    """Gives a path as text for ids and reports: NFC, `/` between names, one line, within the cap of a string."""
    text = path.replace(os.sep, "/").encode("utf-8", "replace").decode("utf-8")
    return clipped(one_line(unicodedata.normalize("NFC", text)), MAX_STRING_BYTES - 24)


def _walk(root: Path, findings: Findings) -> list[str]:
    """Gives the paths below the root, sorted, of what may be read; what is left alone is reported."""
    found: list[str] = []
    left: Counter[str] = Counter()
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError as error:
            findings.skip("folder", shown(folder), error.strerror or "can't be read")
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                findings.skip("link", shown(path), "links are not followed")
            elif entry.is_dir(follow_symlinks=False):
                if entry.name.startswith("."):
                    findings.skip("folder", shown(path), "hidden folders are left alone")
                else:
                    folders.append(path)
            elif entry.name.lower().endswith(".md"):
                found.append(path)
            else:
                left[Path(entry.name).suffix.lower() or "no suffix"] += 1
    for suffix, count in sorted(left.items()):
        findings.skip("files", shown(suffix), f"{count} not Markdown: left alone")
    return sorted(found)


def _read_text(path: Path, where: str, findings: Findings) -> str | None:
    """Gives the text of a regular file, or reports why it can't be taken."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        findings.skip("file", where, error.strerror or "can't be read")
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            findings.skip("file", where, "not a regular file")
            return None
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        findings.skip("file", where, f"over {MAX_FILE_BYTES} bytes")
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        findings.skip("file", where, f"not UTF-8 at byte {error.start}")
        return None


def _memory(text: str, path: str, claimed: dict[str, str], findings: Findings) -> Imported | None:
    """Gives the memory that a file is, before any split, or reports that there is nothing in it."""
    front = read_front_matter(text)
    for line, field, why in front.faults:
        findings.warn(f"{path}:{line}", clipped(one_line(field), 80), why)
    payload, status = fields_payload(front.fields, path, findings)
    body = front.body.strip("\r\n").rstrip()
    content = body or payload.get("summary") or payload.get("title")
    if not content:
        findings.skip("file", path, "empty")
        return None
    line = _first_line(front)
    first = next((row for row in map(str.strip, body.split("\n")) if row), "")
    where = f"{path}:{line}"
    if not front.fields:
        payload["summary"] = fit_line(first, MAX_NOTE_BYTES, where, "summary", findings)
    if "title" not in payload:
        payload["title"] = clipped(one_line(_heading(first) or Path(path).stem), MAX_STRING_BYTES)
    payload["content"] = content
    payload["sources"] = [*payload.get("sources", []), where]
    return Imported(_identity(front, path, claimed, findings), payload, path, line, status)


def _first_line(front: FrontMatter) -> int:
    """Gives the line of the file on which its content starts."""
    lead = front.body[: len(front.body) - len(front.body.lstrip("\r\n"))]
    return front.body_line + lead.count("\n") if front.body.strip() else 1


def _heading(line: str) -> str:
    depth = len(line) - len(line.lstrip("#"))
    return line[depth:].strip() if 0 < depth <= 6 and line[depth : depth + 1] in (" ", "\t") else ""


def _identity(front: FrontMatter, path: str, claimed: dict[str, str], findings: Findings) -> str:
    """Gives the memory id: the file's own, if it is one and free, else one by the path."""
    by_path = stable_id("note", path.removesuffix(".md"))
    while by_path in claimed:
        by_path += "-2"
    own = front.fields.get("id")
    if own is None:
        return by_path
    where = f"{path}:{own.line}"
    text = unicodedata.normalize("NFC", own.text or "")
    if not is_memory_id(text):
        findings.warn(where, "id", "not a memory id: the path names the memory")
        return by_path
    if text in claimed:
        findings.warn(where, "id", f"{claimed[text]} has it: taken as a new memory")
        return by_path
    return text


def _is_free(parts: list[Imported], claimed: dict[str, str]) -> bool:
    return not any(part.memory_id in claimed for part in parts)
