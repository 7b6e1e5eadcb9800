"""The tables of lethe.db.

Every table is project-local and its key begins with `project_id`, but for `project` and `object_project`. Rows of `changeset`, `version`,
`edge` and `node` are named by one integer: the project's number in the upper bits, a count within it below (`row_range`), so that the
primary key is a B-tree that grows at its end.
"""

from __future__ import annotations

from memory_git.storage.migrate import Schema

_TABLES = """
CREATE TABLE project (
    project_id TEXT PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
    root_changeset_id TEXT,
    baseline_seq INTEGER NOT NULL,
    cursor_salt TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE object_project (
    object_id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    kind TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ref (
    project_id TEXT NOT NULL,
    ref_name TEXT NOT NULL,
    head_changeset_id TEXT NOT NULL,
    protected INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (project_id, ref_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE ref_log (
    project_id TEXT NOT NULL,
    ref_name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    from_head TEXT,
    to_head TEXT NOT NULL,
    principal TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (project_id, ref_name, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE changeset (
    id INTEGER PRIMARY KEY,
    project_id TEXT NOT NULL,
    changeset_id TEXT NOT NULL,
    parent_ids TEXT NOT NULL,
    ref_name TEXT NOT NULL,
    author_principal TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    created_at TEXT NOT NULL,
    state_root TEXT NOT NULL,
    memories_row INTEGER NOT NULL,
    memories_digest BLOB NOT NULL,
    memories_count INTEGER NOT NULL,
    edges_row INTEGER NOT NULL,
    edges_digest BLOB NOT NULL,
    edges_count INTEGER NOT NULL,
    authored_digest TEXT NOT NULL,
    integrity_digest TEXT NOT NULL,
    digest_version INTEGER NOT NULL,
    author_signature TEXT,
    request_digest TEXT NOT NULL,
    message_salt TEXT,
    evidence_salt TEXT,
    verification_salt TEXT,
    message TEXT,
    evidence BLOB,
    verification BLOB,
    authored_view BLOB NOT NULL
) STRICT;
-- What can be large stands last: a column behind it is read past all of it.
CREATE UNIQUE INDEX changeset_by_id ON changeset (project_id, changeset_id);
CREATE UNIQUE INDEX changeset_by_key ON changeset (project_id, author_principal, idempotency_key);

CREATE TABLE op (
    project_id TEXT NOT NULL,
    changeset_row INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    op_type TEXT NOT NULL,
    target_event_id TEXT,
    resulting_event_id TEXT,
    payload BLOB,
    salt TEXT,
    op_digest TEXT NOT NULL,
    visibility TEXT NOT NULL,
    owner_principal TEXT NOT NULL,
    PRIMARY KEY (project_id, changeset_row, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE version (
    id INTEGER PRIMARY KEY,
    project_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    memory_key INTEGER NOT NULL,
    changeset_row INTEGER NOT NULL,
    ordinal INTEGER,
    previous INTEGER,
    second_previous INTEGER,
    record_digest BLOB NOT NULL,
    salt BLOB,
    body BLOB
) STRICT;
CREATE INDEX version_of_memory ON version (project_id, memory_key);

CREATE TABLE edge (
    id INTEGER PRIMARY KEY,
    project_id TEXT NOT NULL,
    from_memory_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    to_memory_id TEXT NOT NULL,
    changeset_row INTEGER NOT NULL,
    ordinal INTEGER
) STRICT;
CREATE INDEX edge_from ON edge (project_id, from_memory_id);
CREATE INDEX edge_to ON edge (project_id, to_memory_id);

CREATE TABLE node (
    id INTEGER PRIMARY KEY,
    project_id TEXT NOT NULL,
    base INTEGER,
    steps INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE claim (
    project_id TEXT NOT NULL,
    claim INTEGER NOT NULL,
    version_row INTEGER NOT NULL,
    PRIMARY KEY (project_id, claim, version_row)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE version_words USING fts5(words, content='', contentless_delete=1, detail='none', tokenize="ascii");
INSERT INTO version_words (version_words, rank) VALUES ('secure-delete', 1);

CREATE TABLE event (
    project_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    content TEXT,
    salt TEXT,
    content_digest TEXT NOT NULL,
    memory_id TEXT,
    changeset_id TEXT,
    record_digest TEXT,
    actor TEXT,
    created_at TEXT NOT NULL,
    event_digest TEXT NOT NULL,
    PRIMARY KEY (project_id, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX event_by_id ON event (project_id, event_id);

CREATE TABLE conflict (
    project_id TEXT NOT NULL,
    conflict_id TEXT NOT NULL,
    identity_digest TEXT NOT NULL,
    body BLOB NOT NULL,
    body_digest TEXT NOT NULL,
    status TEXT NOT NULL,
    outcome TEXT,
    resolution_note TEXT,
    resolved_by TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (project_id, conflict_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conflict_by_identity ON conflict (project_id, identity_digest);
CREATE INDEX conflict_by_status ON conflict (project_id, status);

CREATE TABLE conflict_proposal (
    project_id TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    conflict_id TEXT NOT NULL,
    PRIMARY KEY (project_id, proposal_id, conflict_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conflict_proposal_by_conflict ON conflict_proposal (project_id, conflict_id);

CREATE TABLE redaction (
    project_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    redaction_id TEXT NOT NULL,
    memory_ids TEXT NOT NULL,
    principal TEXT NOT NULL,
    reason TEXT NOT NULL,
    versions INTEGER NOT NULL,
    ops INTEGER NOT NULL,
    events INTEGER NOT NULL,
    at TEXT NOT NULL,
    redaction_digest TEXT NOT NULL,
    PRIMARY KEY (project_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE redacted_memory (
    project_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    redaction_seq INTEGER NOT NULL,
    PRIMARY KEY (project_id, memory_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE manifest (
    project_id TEXT NOT NULL,
    manifest_id TEXT NOT NULL,
    body BLOB NOT NULL,
    manifest_digest TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (project_id, manifest_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE merge_nonce (
    project_id TEXT NOT NULL,
    nonce TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (project_id, nonce)
) STRICT, WITHOUT ROWID;

CREATE TABLE memory_protected_ref_advances (
    project_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    advance_id TEXT NOT NULL,
    ref_name TEXT NOT NULL,
    from_head TEXT NOT NULL,
    to_head TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    nonce TEXT NOT NULL,
    envelope_wire TEXT NOT NULL,
    proposal_state BLOB,
    at TEXT NOT NULL,
    PRIMARY KEY (project_id, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX advance_by_nonce ON memory_protected_ref_advances (project_id, nonce);

CREATE TABLE assembly (
    project_id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    seq INTEGER NOT NULL,
    assembly_id TEXT NOT NULL,
    body BLOB NOT NULL,
    body_digest TEXT NOT NULL,
    verdict TEXT,
    note TEXT,
    created_at TEXT NOT NULL,
    PRIMARY KEY (project_id, session_key, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX assembly_by_id ON assembly (project_id, assembly_id);
"""

_ON_POSTGRES = """
CREATE SEQUENCE row_block CACHE 1;

ALTER TABLE changeset ADD COLUMN arrived xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX changeset_arrived ON changeset (project_id, arrived);

CREATE INDEX version_made_by ON version (project_id, changeset_row);
CREATE INDEX edge_made_by ON edge (project_id, changeset_row);

CREATE TABLE version_words (
    project_id text COLLATE "C" NOT NULL,
    version_row bigint NOT NULL,
    words bigint[] NOT NULL,
    PRIMARY KEY (project_id, version_row)
);
CREATE INDEX version_of_word ON version_words USING gin (words);
"""
"""Rows come from blocks of one sequence, and the order of arrival is told by transactions, which end in any order (decision 14)."""

SCHEMA = Schema("lethe", (_TABLES,), (_ON_POSTGRES,))

PROJECT_SHIFT = 40
FIRST_ROW = 1 << PROJECT_SHIFT
"""The least row of all: projects are numbered from 1."""


def row_range(number: int) -> tuple[int, int]:
    """Gives the least row that a project may have, and the first beyond it.

    >>> row_range(1) == (2**40, 2**41)
    True
    """
    return number << PROJECT_SHIFT, (number + 1) << PROJECT_SHIFT
