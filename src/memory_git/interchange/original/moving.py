"""The log of an imported ref: moves from what the original kept (5-lethe, writing: imported refs get synthetic rows).

1. A protected ref moved as its recorded advances say, each by whoever merged, when it was merged.
2. Before and after those, and where none were recorded, a ref moved along first parents: by each author, when each wrote.
3. An unprotected ref begins at the newest changeset of its line that was written for another ref, when it was made, by its maker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memory_git.interchange.original.source import OriginalChangeset
from memory_git.lethe.adopting import GivenMove
from memory_git.storage.original import Row

NOBODY = "system"


def moves_of(
    ref: Row,
    made_at: datetime,
    known: Mapping[str, OriginalChangeset],
    advances: Sequence[tuple[Row, datetime]],
    *,
    protected: bool,
) -> list[GivenMove]:
    """Gives the moves of a ref, oldest first, to its head; the head is known."""
    head = ref["head_changeset_id"]
    line = _line(head, known)
    maker = ref.get("created_by_principal") or NOBODY
    if protected:
        return _along_advances(line, head, maker, made_at, advances)
    begins = next(
        (place for place, item in enumerate(line) if item.ref_name != ref["ref_name"]),
        len(line) - 1,
    )
    own, origin = line[:begins], line[begins]
    if own and made_at >= own[-1].created_at:
        own, origin = own[:-1], own[-1]
        made_at = origin.created_at
    return [GivenMove(origin.changeset_id, maker, made_at), *(_written(item) for item in reversed(own))]


def _along_advances(
    line: Sequence[OriginalChangeset],
    head: str,
    maker: str,
    made_at: datetime,
    advances: Sequence[tuple[Row, datetime]],
) -> list[GivenMove]:
    """Gives the moves of a protected ref (rules 1 and 2)."""
    chained = _chained(advances, head)
    places = {item.changeset_id: place for place, item in enumerate(line)}
    begins = chained[0][0]["expected_head"] if chained else head
    before = line[places[begins] :] if begins in places else line[-1:]
    oldest = before[-1]
    moves = [GivenMove(oldest.changeset_id, maker, min(made_at, oldest.created_at))]
    moves += [_written(item) for item in reversed(before[:-1])]
    if chained and moves[-1].to_head != begins:
        moves.append(GivenMove(begins, maker, made_at))
    moves += [GivenMove(row["new_head"], row["merger_principal"], at) for row, at in chained]
    return moves


def _chained(advances: Sequence[tuple[Row, datetime]], head: str) -> list[tuple[Row, datetime]]:
    """Gives the newest run of advances in which each begins where the one before ended, and which ends at the head."""
    run: list[tuple[Row, datetime]] = []
    wanted = head
    for row, at in reversed(advances):
        if row["new_head"] != wanted:
            if run:
                break
            continue
        run.append((row, at))
        wanted = row["expected_head"]
    return list(reversed(run))


def _line(head: str, known: Mapping[str, OriginalChangeset]) -> list[OriginalChangeset]:
    """Gives a head and its first parents, newest first."""
    found = []
    name: str | None = head
    while name is not None and name in known:
        item = known[name]
        found.append(item)
        name = item.parent_ids[0] if item.parent_ids else None
    return found


def _written(item: OriginalChangeset) -> GivenMove:
    return GivenMove(item.changeset_id, item.author, item.created_at)
