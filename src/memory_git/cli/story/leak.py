"""Step 16: no leak. Every output is asked before and after a secret is written, by who may not see it: the same bytes.

The list of outputs is taken from the served OpenAPI document, `tools/list`, the resources and prompts, and the command table, so that a new
output fails the step until `COVERED` says how to ask it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from memory_git.cli.charon import COMMANDS
from memory_git.cli.story.actors import Operator
from memory_git.cli.story.beginning import CACHE
from memory_git.cli.story.expect import expect, expect_equal
from memory_git.cli.story.tale import Tale
from memory_git.cli.story.world import PROJECT, canonical
from memory_git.domain.ids import SHARED_MAIN
from memory_git.mcp.client import ToolRefused

SECRET = "The vault is behind the stage."  # noqa: S105 (a memory, not a password)
SECRET_ID = "story/vault"  # noqa: S105
SECRET_REF = "refs/agents/agent-a/main"  # noqa: S105
Ask = Callable[[Tale], bytes]
_NONCE = re.compile(r"(?<=the nonce )[0-9a-f]+|(?<=untrusted-memory )[0-9a-f]+")
"""What is fresh in every fence."""


def nothing_leaks(tale: Tale) -> Mapping[str, Any]:
    """Twin worlds, without the secret and with it, look the same to who may not see it; it can't reach shared memory at all."""
    outputs = _outputs(tale)
    _expect_all_covered(tale)
    without = {name: ask(tale) for name, ask in outputs.items()}
    secret_head = _write_secret(tale)
    after = {name: ask(tale) for name, ask in outputs.items()}
    for name, then in without.items():
        expect_equal(after[name], then, f"what {name} answers, without the secret and with it")
        expect(SECRET.encode() not in after[name], f"{name} does not hold the secret")
    own = tale.agent_a.call("memory_show", project=PROJECT, changeset_id=secret_head)
    expect_equal(own["ops"][0]["payload"]["content"], SECRET, "its owner sees it")
    _expect_absent_to_others(tale, secret_head)
    proposed = tale.agent_a.refused_or(
        "memory_merge_propose",
        project=PROJECT,
        target_ref=SHARED_MAIN,
        head_changeset_id=secret_head,
        message="The vault",
        idempotency_key="vault",
    )
    blocked = _blocked_by_privacy(tale, proposed)
    return {"outputs_compared": len(outputs), "a_private_memory_is_kept_out_by": blocked}


def _blocked_by_privacy(tale: Tale, proposed: Any) -> str:
    if isinstance(proposed, ToolRefused):
        expect_equal(proposed.code, "private_in_delta", "why a private memory can't be proposed")
        return proposed.code
    missing = {item["code"] for item in proposed["verdict"]["missing"]}
    expect(
        "private_in_delta" in missing, f"a private memory keeps the proposal from merging: {sorted(missing)}"
    )
    tale.agent_a.call("memory_merge_cancel", proposal_id=proposed["proposal_id"])
    return "private_in_delta"


def _write_secret(tale: Tale) -> str:
    payload = {
        "memory_id": SECRET_ID,
        "content": SECRET,
        "kind": "fact",
        "visibility": "private",
        "scope": "seating",
    }
    op = {"op_type": "add_memory", "payload": payload}
    made = tale.agent_a.commit(
        SECRET_REF, [op], f"About {SECRET_ID}", "secret", project=PROJECT, read_head=True
    )
    return str(made["changeset_id"])


def _expect_absent_to_others(tale: Tale, secret_head: str) -> None:
    absent = "00000000-0000-7000-8000-000000000000"
    for tool, name in (("memory_show", "changeset_id"), ("memory_diff", "target")):
        real = tale.agent_b.refused(tool, project=PROJECT, **{name: secret_head})
        never = tale.agent_b.refused(tool, project=PROJECT, **{name: absent})
        expect_equal(real.code, never.code, f"{tool} of the secret's changeset, against one that never was")
    status, body = tale.world.person("agent-b").raw(f"/projects/{PROJECT}/changesets/{secret_head}")
    other = tale.world.person("agent-b").raw(f"/projects/{PROJECT}/changesets/{absent}")
    expect_equal((status, body), other, "the secret's changeset over HTTP, against one that never was")


def _outputs(tale: Tale) -> dict[str, Ask]:
    """Gives every output with how agent B asks for it."""
    head, changeset = tale.shared_head(), tale.changesets["agent-b"]["changeset_id"]
    proposal, manifest = tale.proposals["agent-b"], tale.kept["after_revert"]["manifest_id"]
    tools: dict[str, dict[str, Any]] = {
        "memory_status": {"project": PROJECT},
        "memory_ref_list": {"project": PROJECT},
        "memory_log": {"project": PROJECT, "ref": SHARED_MAIN, "limit": 50},
        "memory_show": {"project": PROJECT, "changeset_id": changeset},
        "memory_diff": {"project": PROJECT, "target": head},
        "memory_conflicts": {"project": PROJECT},
        "memory_context_at": {"project": PROJECT, "ref": SHARED_MAIN, "query": "vault stage seat"},
        "memory_whoami": {},
        "search": {"query": "vault behind the stage"},
        "fetch": {"id": CACHE},
    }
    asked: dict[str, Ask] = {f"tool {name}": _tool(name, arguments) for name, arguments in tools.items()}
    project = f"/projects/{PROJECT}"
    paths = {
        "/whoami": "/whoami",
        "/projects": "/projects",
        "/projects/{project}/status": f"{project}/status",
        "/projects/{project}/refs": f"{project}/refs",
        "/projects/{project}/changesets": f"{project}/changesets?ref={SHARED_MAIN}",
        "/projects/{project}/changesets/{changeset_id}": f"{project}/changesets/{changeset}",
        "/projects/{project}/diff": f"{project}/diff?target={head}",
        "/projects/{project}/memories": f"{project}/memories?ref={SHARED_MAIN}&limit=200",
        "/projects/{project}/memories/one": f"{project}/memories/one?memory_id={CACHE}&ref={SHARED_MAIN}",
        "/projects/{project}/memories/history": f"{project}/memories/history?memory_id={CACHE}&ref={SHARED_MAIN}",
        "/projects/{project}/search": f"{project}/search?query=vault%20stage%20seat",
        "/projects/{project}/conflicts": f"{project}/conflicts",
        "/projects/{project}/proposals": f"{project}/proposals",
        "/projects/{project}/redactions": f"{project}/redactions",
        "/proposals/{proposal_id}": f"/proposals/{proposal}",
        "/manifests/{manifest_id}": f"/manifests/{manifest}",
        "/manifests/{manifest_id}/reproduce": f"/manifests/{manifest}/reproduce",
        "/projects/{project}/policy": f"{project}/policy",
        "/principals": "/principals",
        "/obols": "/obols",
        "/grants": "/grants",
        "/ledger": f"/ledger?project={PROJECT}",
        "/ledger/verification": f"/ledger/verification?project={PROJECT}",
    }
    asked |= {f"route {name}": _route(path) for name, path in paths.items()}
    asked |= {f"resource {uri}": _resource(uri) for uri in _resources(changeset, proposal)}
    prompts = {"review_proposal": {"proposal_id": proposal}, "summarise_changes": {"base": changeset}}
    asked |= {f"prompt {name}": _prompt(name, arguments) for name, arguments in prompts.items()}
    asked |= {f"command {' '.join(words[:2])}": _command(*words) for words in _commands(proposal)}
    return asked


COVERED_ROUTES_APART = frozenset({"/live", "/openapi.json"})
"""The live feed tells ids of what a caller may see, and is asked by tests/security; the document tells no memory."""


COVERED_COMMANDS_APART = frozenset(
    [
        "serve",
        "mcp",
        "demo",
        "import",
        "backup",
        "restore",
        "reconcile",
        "completion",
        "secret",
        "oauth",
        "config",
        "doctor",
    ]
)
"""They serve, write, or work on the data directory alone: who may not see a memory is not let in there."""


def _commands(proposal: str) -> list[tuple[str, ...]]:
    """Gives the reading commands of `charon`, as agent B types them at a terminal of another machine."""
    project = ("--project", PROJECT)
    return [
        ("principal", "list"),
        ("obol", "list"),
        ("grant", "list"),
        ("project", "list"),
        ("project", "policy", PROJECT),
        ("proposal", "list", *project),
        ("proposal", "show", proposal),
        ("conflict", "list", *project),
        ("ledger", "tail", *project),
        ("ledger", "verify", *project),
        ("redact", "--list", *project),
    ]


def _resources(changeset: str, proposal: str) -> list[str]:
    return [
        f"memory://{PROJECT}/{SHARED_MAIN}",
        f"memory://{PROJECT}/changesets/{changeset}",
        f"memory://{PROJECT}/proposals/{proposal}",
        f"memory://{PROJECT}/memories/{CACHE}",
    ]


def _tool(name: str, arguments: Mapping[str, Any]) -> Ask:
    def ask(tale: Tale) -> bytes:
        answer = tale.agent_b.refused_or(name, **arguments)
        if isinstance(answer, ToolRefused):
            return str(answer).encode()
        return canonical({name: value for name, value in answer.items() if name != "evaluated_at"})

    return ask


def _route(path: str) -> Ask:
    def ask(tale: Tale) -> bytes:
        status, body = tale.world.person("agent-b").raw(path)
        return str(status).encode() + b" " + body

    return ask


def _prompt(name: str, arguments: Mapping[str, str]) -> Ask:
    return lambda tale: _NONCE.sub("<nonce>", tale.agent_b.prompt(name, **arguments)).encode()


def _command(*words: str) -> Ask:
    def ask(tale: Tale) -> bytes:
        world = tale.world
        remote = {"CHARON_URL": world.url, "CHARON_TOKEN": world.tokens["agent-b"]}
        return canonical(Operator({**world.environment(), **remote}).try_run("charon", *words))

    return ask


def _resource(uri: str) -> Ask:
    return lambda tale: _NONCE.sub("<nonce>", tale.agent_b.read(uri)).encode()


def _expect_all_covered(tale: Tale) -> None:
    """Fails when a reading tool, GET route, kind of resource, prompt or command is not among the outputs that are asked."""
    asked, missing = set(_outputs(tale)), list[str]()
    for tool in tale.agent_b.tools():
        if tool.annotations is not None and tool.annotations.read_only_hint:
            missing += [] if f"tool {tool.name}" in asked else [f"tool {tool.name}"]
    document = httpx.get(f"{tale.world.url}/api/openapi.json").json()
    for path, methods in document["paths"].items():
        name = path.removeprefix("/api/v1")
        if "get" in methods and path.startswith("/api/v1") and name not in COVERED_ROUTES_APART:
            missing += [] if f"route {name}" in asked else [f"route {name}"]
    missing += [f"prompt {name}" for name in tale.agent_b.prompts() if f"prompt {name}" not in asked]
    named = {output.split()[1] for output in asked if output.startswith("command ")}
    missing += [f"command {name}" for name in COMMANDS if name not in named | COVERED_COMMANDS_APART]
    expect_equal(missing, [], "outputs that nobody asks")
    expect_equal(len(tale.agent_b.templates()), len(_resources("", "")), "the kinds of resources")
