"""Exit codes of both programs, and how a refusal is told on a terminal (10-operations, configuration).

0    done                       4    conflict, or the head has moved
1    finding or failed check    5    not allowed
2    usage                      6    unavailable, try again
3    refused                    130  stopped by Ctrl-C
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from memory_git.cli.render import printable, write_document
from memory_git.domain import errors


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    FINDING = 1
    USAGE = 2
    REFUSED = 3
    CONFLICT = 4
    NOT_ALLOWED = 5
    UNAVAILABLE = 6
    INTERRUPTED = 130
    BROKEN_PIPE = 141


_BY_STATUS = {
    401: Exit.NOT_ALLOWED,
    403: Exit.NOT_ALLOWED,
    409: Exit.CONFLICT,
    429: Exit.UNAVAILABLE,
    503: Exit.UNAVAILABLE,
}


def exit_code(error: Exception) -> Exit:
    """Decides the exit code of an error that ended a command; other errors than these are bugs."""
    match error:
        case errors.Refused():
            return _BY_STATUS.get(error.status, Exit.REFUSED)
        case errors.Corrupt():
            return Exit.FINDING
        case _:
            return Exit.UNAVAILABLE


def problem(error: Exception) -> dict[str, Any]:
    """Gives the problem document of an error that ended a command."""
    match error:
        case errors.Refused():
            return error.to_problem()
        case errors.Corrupt():
            return errors.Refused(
                "corrupt", str(error), kind=error.kind, id=str(error.object_id)
            ).to_problem()
        case OSError():
            return errors.Unavailable("os_error", _os_message(error)).to_problem()
        case _:
            raise error


def report(error: Exception, *, as_json: bool) -> Exit:
    """Tells why a command ended: for people on stderr, or as one problem document on stdout."""
    document = problem(error)
    if as_json:
        write_document(document)
    else:
        sys.stderr.write(explain(document))
    return exit_code(error)


def explain(document: Mapping[str, Any]) -> str:
    """Gives the lines for a person: the message with its code, each fault, each fact."""
    lines = [f"error: {printable(str(document['message']))} ({document['code']})"]
    lines += [f"  {_fault_line(fault)}" for fault in document.get("faults", ())]
    facts = {key: value for key, value in document.items() if key not in _PROBLEM_MEMBERS}
    lines += [f"  {key}: {text}" for key, value in facts.items() for text in _fact_texts(value)]
    return "\n".join(lines) + "\n"


_PROBLEM_MEMBERS = frozenset({"type", "title", "status", "detail", "error", "message", "code", "faults"})


def _fault_line(fault: Mapping[str, Any]) -> str:
    place = "" if fault.get("ordinal") is None else f"op {fault['ordinal']}, "
    found = f" (found: {fault['found']})" if fault.get("found") else ""
    return printable(f"{place}{fault['field']}: {fault['rule']}{found}")


def _fact_texts(value: object) -> list[str]:
    """Gives the lines of a fact: one for each conflict and each thing that is missing, else the value."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        return [printable(_item_text(item)) for item in value]
    return [printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]


def _item_text(item: Mapping[str, Any]) -> str:
    if "what" in item:
        return str(item["what"])
    if "conflict_id" in item and "detail" in item:
        return f"{item['conflict_id']}: {item['detail']}"
    return json.dumps(item, ensure_ascii=False)


def _os_message(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason
