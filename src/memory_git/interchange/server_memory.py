"""Reads the MCP memory server's JSONL: one entity = one memory, one relation = one relationship.

1. The official form marks a line with `type`; forks write `_type`, or nothing, and snake case: all are taken.
   A whole graph `{"entities": [...], "relations": [...]}`, on one line or as the file, is taken too.
2. A name is one memory. Where it occurs again, the later version corrects the earlier one.
3. A relation whose end is unknown, or that was said before, is skipped and reported.
4. Keys without a place of their own go into `extra`; those of relations are reported.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memory_git.domain.canonical import decode
from memory_git.domain.errors import Invalid
from memory_git.domain.ops import MAX_STRING_BYTES
from memory_git.interchange.entities import entity_payload
from memory_git.interchange.fitting import clipped, fit_line, fits_payload, one_line
from memory_git.interchange.identity import stable_id
from memory_git.interchange.imported import Findings, Import, Imported, ImportedLink
from memory_git.interchange.splitting import split_memory

_ENTITY_KEYS = frozenset({"observations", "entityType", "entity_type"})
_RELATION_KEYS = frozenset({"type", "_type", "from", "to", "relationType", "relation_type"})

Item = tuple[int, Mapping[str, Any]]
Version = tuple[list[Imported], list[ImportedLink]]


def import_server_memory(content: bytes, file_name: str) -> Import:
    """Gives the memories and links of one file; a line that can't be taken is in the report, with the reason."""
    findings = Findings()
    entities: list[Item] = []
    relations: list[Item] = []
    for line, value in _items(content, file_name, findings):
        shape = _shape(value)
        if shape == "entity":
            entities.append((line, value))
        elif shape == "relation":
            relations.append((line, value))
        else:
            findings.skip("line", f"{file_name}:{line}", "neither an entity nor a relation")
    memories, parts, ids = _memories(entities, file_name, findings)
    return findings.finish(memories, parts + _links(relations, ids, file_name, findings))


def _items(content: bytes, file_name: str, findings: Findings) -> Iterator[tuple[int, Any]]:
    """Gives (line, value) of every JSON line, a graph taken apart; blank lines are nothing."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    whole = _whole_graph(content)
    if whole is not None:
        yield from _graph(1, whole)
        return
    for line, text in enumerate(content.split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            value = decode(text)
        except Invalid as error:
            findings.skip("line", f"{file_name}:{line}", error.message)
            continue
        yield from _graph(line, value) if _is_graph(value) else [(line, value)]


def _whole_graph(content: bytes) -> Mapping[str, Any] | None:
    """Gives the graph that a file of several lines is as a whole, or None."""
    if content.lstrip()[:1] != b"{" or b'"entities"' not in content:
        return None
    try:
        value = decode(content)
    except Invalid:
        return None
    return value if _is_graph(value) else None


def _is_graph(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("entities"), list) and "name" not in value


def _graph(line: int, graph: Mapping[str, Any]) -> Iterator[tuple[int, Any]]:
    relations = graph.get("relations")
    for value in [*graph["entities"], *(relations if isinstance(relations, list) else [])]:
        yield line, value


def _shape(value: Any) -> str:
    """Decides what a value is: by its mark, or else by its keys."""
    if not isinstance(value, dict):
        return ""
    mark = value.get("type", value.get("_type"))
    if mark in ("entity", "relation"):
        return str(mark)
    if "name" in value and _ENTITY_KEYS & value.keys():
        return "entity"
    if "from" in value and "to" in value and ("relationType" in value or "relation_type" in value):
        return "relation"
    return ""


def _memories(
    entities: Iterable[Item], file_name: str, findings: Findings
) -> tuple[list[Imported], list[ImportedLink], dict[str, str]]:
    """Gives the memories, the links between split parts, and the memory id of every name."""
    ids: dict[str, str] = {}
    versions: dict[str, list[Version]] = {}
    for line, entity in entities:
        where = f"{file_name}:{line}"
        name = _name(entity.get("name"))
        if not name:
            findings.skip("entity", where, "no usable name")
            continue
        payload = entity_payload(entity, name, where, findings)
        memory = Imported(stable_id("entity", name), payload, file_name, line)
        before = versions.get(memory.memory_id)
        if before and _is_said_again(memory, before[-1][0][0], findings):
            continue
        version = split_memory(memory, findings)
        if not all(fits_payload(part.payload) for part in version[0]):
            findings.skip("entity", where, "more than a payload can hold")
            continue
        versions.setdefault(memory.memory_id, []).append(version)
        ids[name] = memory.memory_id
    memories = [part for each in versions.values() for part in _lasting(each, findings)]
    return memories, [link for each in versions.values() for link in each[-1][1]], ids


def _is_said_again(memory: Imported, before: Imported, findings: Findings) -> bool:
    """Decides whether a version says just what the one before it says, and reports either case."""
    where = f"{memory.source_file}:{memory.source_line}"
    ignored = {"sources": None, "extra": None}
    if {**before.payload, **ignored} == {**memory.payload, **ignored}:
        findings.skip("entity", where, f"the same as on line {before.source_line}")
        return True
    findings.warn(
        where, "name", f"corrects the version on line {before.source_line}, which stays in its history"
    )
    return False


def _lasting(versions: list[Version], findings: Findings) -> Iterator[Imported]:
    """Gives the parts of every version that the last version still has."""
    last = {part.memory_id for part in versions[-1][0]}
    for parts, _ in versions:
        for part in parts:
            if part.memory_id in last:
                yield part
            else:
                where = f"{part.source_file}:{part.source_line}"
                findings.skip("part of an entity", where, "the later version has no such part")


def _links(
    relations: Iterable[Item], ids: Mapping[str, str], file_name: str, findings: Findings
) -> list[ImportedLink]:
    """Gives each relation between known entities once."""
    found: dict[tuple[str, str, str], ImportedLink] = {}
    homeless: Counter[str] = Counter()
    for line, relation in relations:
        where = f"{file_name}:{line}"
        link = _link(relation, ids, where, findings)
        if isinstance(link, str):
            findings.skip("relation", where, link)
            continue
        before = found.setdefault((link.from_id, link.kind, link.to_id), link)
        if before is not link:
            findings.skip("relation", where, f"the same as at {before.source}")
        homeless.update(relation.keys() - _RELATION_KEYS)
    for key, count in sorted(homeless.items()):
        label = clipped(one_line(key), 80)
        findings.warn(file_name, label, f"a relationship has no place for it: left out of {count} relations")
    return list(found.values())


def _link(
    relation: Mapping[str, Any], ids: Mapping[str, str], where: str, findings: Findings
) -> ImportedLink | str:
    """Gives the link, or why there is none."""
    kind = relation.get("relationType", relation.get("relation_type"))
    if not isinstance(kind, str) or not one_line(kind):
        return "no relationType"
    ends = [_name(relation.get("from")), _name(relation.get("to"))]
    for end in ends:
        if end not in ids:
            return f"names an unknown entity: {clipped(one_line(end), 120) or 'without a name'}"
    start, goal = (ids[end] for end in ends)
    if start == goal:
        return "leads from an entity to itself"
    kind = fit_line(kind, MAX_STRING_BYTES, where, "relationType", findings)
    return ImportedLink(start, kind, goal, where)


def _name(value: Any) -> str:
    """Gives the name in NFC, or nothing when it isn't one."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) and one_line(value) else ""
