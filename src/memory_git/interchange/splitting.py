"""Splits content over the cap: at headings first, then paragraphs, lines, characters (9-repository, interchange).

The pieces, put together again, are the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memory_git.domain.ops import MAX_CONTENT_BYTES, MAX_NOTE_BYTES, MAX_STRING_BYTES
from memory_git.interchange.fitting import bytes_of, clipped, one_line
from memory_git.interchange.identity import clip_bytes, slug
from memory_git.interchange.imported import Findings, Imported, ImportedLink

_MARKS = re.compile(r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})|(?P<heading>#{1,6})(?=[ \t\r]|$))", re.MULTILINE)
_PARAGRAPH_END = re.compile(r"\n[ \t\r]*\n")
_LINE_END = re.compile(r"\n")
_DEEPEST_HEADING, _PARAGRAPHS, _LINES = 6, 7, 8


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text: its first heading (may be empty), the line it starts on, its text."""

    heading: str
    line: int
    text: str


def split_memory(memory: Imported, findings: Findings) -> tuple[list[Imported], list[ImportedLink]]:
    """Gives a memory whose content is within the cap, or its pieces, each `part_of` the first, which keeps the id."""
    content = memory.payload["content"]
    if bytes_of(content) <= MAX_CONTENT_BYTES:
        return [memory], []
    pieces = [piece for piece in split_text(content, MAX_CONTENT_BYTES) if piece.text.strip()]
    where = f"{memory.source_file}:{memory.source_line}"
    findings.warn(where, "content", f"{bytes_of(content)} bytes, split into {len(pieces)} linked memories")
    ids = _piece_ids(memory.memory_id, pieces)
    parts = [_part(memory, ids[n], n, len(pieces), piece) for n, piece in enumerate(pieces)]
    return parts, [ImportedLink(part, "part_of", ids[0], where) for part in ids[1:]]


def split_text(text: str, limit_bytes: int) -> list[Piece]:
    """Gives pieces of at most so many UTF-8 bytes, cut at the highest headings that do."""
    pieces, line = [], 0
    for part in _divide(text, limit_bytes, 1):
        pieces.append(Piece(_first_heading(part), line, part))
        line += part.count("\n")
    return pieces


def _divide(text: str, limit_bytes: int, level: int) -> list[str]:
    """Cuts at one level (headings 1 to 6, paragraphs, lines), packs what fits together, divides what does not."""
    if level > _LINES:
        return list(_by_characters(text, limit_bytes))
    cuts = list(_cuts(text, level))
    parts: list[str] = []
    open_bytes: int | None = None
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        part = text[start:end]
        size = bytes_of(part)
        if size > limit_bytes:
            parts += _divide(part, limit_bytes, level + 1)
            open_bytes = None
        elif open_bytes is not None and open_bytes + size <= limit_bytes:
            parts[-1] += part
            open_bytes += size
        elif part:
            parts.append(part)
            open_bytes = size
    return parts


def _cuts(text: str, level: int) -> Iterator[int]:
    """Gives the offsets, above 0, where a level starts something new."""
    if level <= _DEEPEST_HEADING:
        found = (start for start, depth in _headings(text) if depth <= level)
    else:
        found = (end.end() for end in (_PARAGRAPH_END if level == _PARAGRAPHS else _LINE_END).finditer(text))
    return (offset for offset in found if offset > 0)


def _headings(text: str) -> Iterator[tuple[int, int]]:
    """Gives (offset, depth) of every ATX heading that stands outside a code fence (CommonMark §4.2, §4.5)."""
    fence = ""
    for mark in _MARKS.finditer(text):
        ticks = mark["fence"]
        if ticks:
            if not fence:
                fence = ticks
            elif ticks[0] == fence[0] and len(ticks) >= len(fence):
                fence = ""
        elif not fence:
            yield mark.start(), len(mark["heading"])


def _by_characters(text: str, limit_bytes: int) -> Iterator[str]:
    while text:
        part = clip_bytes(text[:limit_bytes], limit_bytes)
        yield part
        text = text[len(part) :]


def _first_heading(text: str) -> str:
    for start, depth in _headings(text):
        line = text[start:].split("\n", 1)[0].strip()
        return one_line(line[depth:].strip().rstrip("#"))
    return ""


def _piece_ids(memory_id: str, pieces: list[Piece]) -> list[str]:
    """Gives the first piece the memory's id, each other one an id by its heading, numbered where that is taken."""
    ids = [memory_id]
    stem = clip_bytes(memory_id, 700)
    for number, piece in enumerate(pieces[1:], start=2):
        part = f"{stem}#{clip_bytes(slug(piece.heading), 240) or f'part-{number}'}"
        while part in ids:
            part = f"{part}-{number}"
        ids.append(part)
    return ids


def _part(memory: Imported, memory_id: str, number: int, of: int, piece: Piece) -> Imported:
    payload = dict(memory.payload, content=piece.text)
    payload["extra"] = {**payload.get("extra", {}), "part": number + 1, "parts": of}
    line = memory.source_line + piece.line
    payload["sources"] = [*payload.get("sources", [])[:-1], f"{memory.source_file}:{line}"]
    if number:
        heading = piece.heading or f"{payload.get('title', memory.memory_id)} ({number + 1} of {of})"
        payload["title"] = clipped(heading, MAX_STRING_BYTES)
        if "summary" in payload:
            payload["summary"] = clipped(heading, MAX_NOTE_BYTES)
    return replace(memory, memory_id=memory_id, payload=payload, source_line=line)
