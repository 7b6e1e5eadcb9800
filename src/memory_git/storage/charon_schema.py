"""The tables of charon.db (6-charon). Identity tables hold for all projects; every other key begins with the project.

A call that names no project has the empty project id in the ledger.
"""

from __future__ import annotations

from memory_git.storage.migrate import Schema

_FIRST = """
CREATE TABLE identity_epoch (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    value INTEGER NOT NULL
) STRICT;
INSERT INTO identity_epoch VALUES (1, 1);

CREATE TABLE principal (
    principal_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('human', 'agent', 'service')),
    display_name TEXT NOT NULL,
    profile TEXT NOT NULL,
    scopes TEXT NOT NULL,
    disabled INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO principal VALUES (
    'local-operator', 'service', 'Owner of the data directory', 'readonly', '[]', 0, '1970-01-01T00:00:00.000000Z'
);

CREATE TABLE actor (
    actor_id TEXT PRIMARY KEY,
    principal_id TEXT NOT NULL REFERENCES principal,
    place INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX actor_of_principal ON actor (principal_id, place);

CREATE TABLE obol (
    obol_id TEXT PRIMARY KEY,
    principal_id TEXT NOT NULL REFERENCES principal,
    digest TEXT NOT NULL,
    key_id TEXT NOT NULL,
    scopes TEXT,
    default_project TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    last_used_at TEXT,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX obol_of_principal ON obol (principal_id);

CREATE TABLE project_grant (
    project_id TEXT NOT NULL,
    principal_id TEXT NOT NULL REFERENCES principal,
    scopes TEXT NOT NULL,
    refs TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (project_id, principal_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX grant_of_principal ON project_grant (principal_id);

CREATE TABLE created_ref (
    project_id TEXT NOT NULL,
    ref_name TEXT NOT NULL,
    principal_id TEXT NOT NULL REFERENCES principal,
    created_at TEXT NOT NULL,
    PRIMARY KEY (project_id, ref_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX created_ref_of_principal ON created_ref (principal_id);

CREATE TABLE sign_in (
    code_digest TEXT PRIMARY KEY,
    principal_id TEXT NOT NULL REFERENCES principal,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    used_at TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE web_session (
    session_digest TEXT PRIMARY KEY,
    principal_id TEXT NOT NULL REFERENCES principal,
    obol_id TEXT,
    csrf_secret TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE project_policy (
    project_id TEXT PRIMARY KEY,
    policy TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE object_project (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE proposal (
    project_id TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    originator TEXT NOT NULL,
    title TEXT NOT NULL,
    message TEXT NOT NULL,
    source_ref TEXT NOT NULL,
    base_changeset_id TEXT,
    head_changeset_id TEXT NOT NULL,
    target_ref TEXT NOT NULL,
    target_head_at_creation TEXT NOT NULL,
    selected_ops TEXT,
    status TEXT NOT NULL,
    judged_digest TEXT NOT NULL,
    kept_ref TEXT NOT NULL,
    candidate_changeset_id TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    closed_by TEXT,
    merged_changeset_id TEXT,
    attestation_changeset_id TEXT,
    followed_up INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, proposal_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX proposal_by_status ON proposal (project_id, status, proposal_id);

CREATE TABLE review (
    project_id TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    review_id TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    reviewer_kind TEXT NOT NULL,
    verdict TEXT NOT NULL,
    comment TEXT NOT NULL,
    findings TEXT NOT NULL,
    severity TEXT,
    judged_digest TEXT NOT NULL,
    counts_for TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (project_id, proposal_id, place),
    FOREIGN KEY (project_id, proposal_id) REFERENCES proposal
) STRICT, WITHOUT ROWID;

CREATE TABLE merge_attempt (
    project_id TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    nonce TEXT NOT NULL,
    merger TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    strategy TEXT NOT NULL,
    expected_head TEXT NOT NULL,
    new_head TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'landed', 'failed')),
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    PRIMARY KEY (project_id, proposal_id, nonce),
    FOREIGN KEY (project_id, proposal_id) REFERENCES proposal
) STRICT, WITHOUT ROWID;
CREATE INDEX merge_attempt_intended ON merge_attempt (project_id, state);

CREATE TABLE request_key (
    project_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    route TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (project_id, principal_id, route, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
    project_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    intent_seq INTEGER,
    previous TEXT,
    link TEXT NOT NULL,
    view TEXT NOT NULL,
    PRIMARY KEY (project_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_of_intent ON ledger (project_id, intent_seq) WHERE intent_seq IS NOT NULL;
CREATE INDEX ledger_of_kind ON ledger (project_id, kind, seq) WHERE kind <> 'read';
"""

_JOURNAL = """
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    previous TEXT,
    link TEXT NOT NULL,
    view TEXT NOT NULL
) STRICT;
"""

_QUOTAS = """
CREATE TABLE quota_use (
    project_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    day TEXT NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (project_id, principal_id, day)
) STRICT, WITHOUT ROWID;
"""

_OAUTH = """
CREATE TABLE oauth_client (
    client_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    created_at TEXT NOT NULL,
    last_used_at TEXT NOT NULL,
    disabled_at TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE oauth_request (
    request_digest TEXT PRIMARY KEY,
    client_id TEXT NOT NULL REFERENCES oauth_client,
    redirect_uri TEXT NOT NULL,
    state TEXT,
    scopes TEXT NOT NULL,
    audience TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE oauth_agent (
    principal_id TEXT PRIMARY KEY REFERENCES principal,
    owner TEXT NOT NULL REFERENCES principal
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_agent_of_owner ON oauth_agent (owner);

CREATE TABLE oauth_grant (
    grant_id TEXT PRIMARY KEY,
    client_id TEXT NOT NULL REFERENCES oauth_client,
    principal_id TEXT NOT NULL REFERENCES oauth_agent,
    granted_by TEXT NOT NULL REFERENCES principal,
    project_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    audience TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_grant_of_client ON oauth_grant (client_id);

CREATE TABLE oauth_code (
    code_digest TEXT PRIMARY KEY,
    grant_id TEXT NOT NULL REFERENCES oauth_grant,
    redirect_uri TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    used_at TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE oauth_token (
    token_id TEXT PRIMARY KEY,
    grant_id TEXT NOT NULL REFERENCES oauth_grant,
    kind TEXT NOT NULL CHECK (kind IN ('access', 'refresh')),
    digest TEXT NOT NULL,
    key_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    used_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_token_of_grant ON oauth_token (grant_id);
"""

_REFUSALS = """
CREATE TABLE refused_value (
    project_id TEXT NOT NULL,
    value_digest TEXT NOT NULL,
    proposal_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    PRIMARY KEY (project_id, value_digest, proposal_id, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX refused_value_of_memory ON refused_value (project_id, memory_id);
"""

CHARON_SCHEMA = Schema("charon", (_FIRST, _JOURNAL, _QUOTAS, _OAUTH, _REFUSALS), ("", "", "", "", ""))
