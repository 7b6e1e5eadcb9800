"""Every output of every face, by the name under which the face itself lists it, and what each is expected to tell whom.

`HTTP` is keyed by `METHOD path` of OpenAPI, `TOOLS` by tool, `RESOURCES` by template, `PROMPTS` by prompt, `COMPLETIONS` by
argument, `PAGES` by route, `COMMANDS` by command line. A test compares these keys with what the faces list.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import click
import httpx
from policy_world import (
    MAIN,
    PROJECT,
    READERS,
    SEARCHERS,
    SEES_PROPOSAL,
    TOPIC,
    WORK,
    Planted,
    PolicyWorld,
    admits,
)

from memory_git.cli import charon, lethe
from memory_git.cli.program import LazyGroup, run
from memory_git.mcp.completions import completion
from memory_git.mcp.errors import REFUSAL
from memory_git.mcp.server import TOOLS as TOOL_TABLE
from memory_git.mcp.server import build_server, call


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: `ok` or the code of a refusal, and all its text."""

    code: str
    text: str


@dataclass
class Desk:
    """All faces over one world, for any of its people."""

    world: PolicyWorld
    url: str
    clients: dict[str, httpx.Client] = field(default_factory=dict)
    browsers: dict[str, httpx.Client] = field(default_factory=dict)

    def http(self, who: str, method: str, path: str, **request: Any) -> Told:
        if who not in self.clients:
            bearer = {"Authorization": f"Bearer {self.world.tokens[who]}"}
            self.clients[who] = httpx.Client(base_url=self.url, headers=bearer)
        return _told(self.clients[who].request(method, path, **request))

    def page(self, who: str, method: str, path: str, **request: Any) -> Told:
        if who not in self.browsers:
            browser = httpx.Client(base_url=self.url, headers={"Origin": self.url})
            assert browser.post("/sign-in", data={"token": self.world.tokens[who]}).status_code == 303
            self.browsers[who] = browser
        browser = self.browsers[who]
        if method == "POST":
            shown = browser.get("/projects").text
            found = re.search(r'name="form_token" value="([^"]+)"', shown)
            request["data"] = {**request.get("data", {}), "form_token": found[1] if found else ""}
        answer = browser.request(method, path, **request)
        code = {200: "ok", 303: "ok", 401: "unauthenticated", 403: "denied", 404: "not_found"}
        return Told(code.get(answer.status_code, str(answer.status_code)), answer.text)

    def tool(self, who: str, name: str, **arguments: Any) -> Told:
        table = {tool.name: tool for tool in TOOL_TABLE}
        found = call(table[name], self.world.gate, self.world.caller(who), arguments)
        code = str((found.meta or {})[REFUSAL]["code"]) if found.is_error else "ok"
        return Told(code, found.model_dump_json())

    def resource(self, who: str, uri: str) -> Told:
        return self._asked(who, lambda server: server.read_resource(uri))

    def prompt(self, who: str, name: str, **arguments: str) -> Told:
        return self._asked(who, lambda server: server.get_prompt(name, arguments))

    def completed(self, who: str, name: str) -> Told:
        found = completion(self.world.gate, self.world.caller(who), name, "", PROJECT)
        return Told("ok", found.model_dump_json())

    def command(self, who: str, *words: str) -> Told:
        """Runs a command line in this process, of a machine that holds the token and an empty data directory."""
        program = {"charon": charon.program, "lethe": lethe.program}[words[0]]
        empty = self.world.folder.parent / "empty"
        settings = {
            "CHARON_URL": self.url,
            "CHARON_TOKEN": self.world.tokens[who],
            "CHARON_DATA_DIR": str(empty),
            "LETHE_DATA_DIR": str(empty),
            "XDG_CONFIG_HOME": str(empty),
        }
        return _run(program, [*words[1:], "--json"], settings)

    def close(self) -> None:
        for client in (*self.clients.values(), *self.browsers.values()):
            client.close()

    def _asked(self, who: str, work: Callable[[Any], Any]) -> Told:
        server = build_server(self.world.gate, lambda: self.world.caller(who))
        try:
            return Told("ok", repr(asyncio.run(work(server))))
        except Exception as error:
            told = getattr(error, "error", None)
            code = (getattr(told, "data", None) or {}).get("code", "") if told is not None else ""
            return Told(code or type(error).__name__, repr(told or error))


def _told(answer: httpx.Response) -> Told:
    code = "ok" if answer.status_code < 400 else str(answer.json()["code"])
    return Told(code, answer.text)


def _run(program: LazyGroup, words: list[str], settings: dict[str, str]) -> Told:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LETHE_", "CHARON_", "MEMORY_GIT_"))
    }
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, {**kept, **settings}, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(program, words)
    text = out.getvalue() + err.getvalue()
    if code == 0:
        return Told("ok", text)
    try:
        return Told(str(json.loads(out.getvalue())["code"]), text)
    except (ValueError, KeyError):
        return Told(f"exit {code}", text)


# what an output is asked about, and what it may tell

Tells = Callable[[PolicyWorld, str, Any], set[str]]


@dataclass(frozen=True, slots=True)
class Output:
    """How one output is asked, and what the model says of the answer.

    `about` is what it is asked for in turn: nothing, each `ref`, each `memory` at its ref, the `proposal`, the `manifest`.
    `needs` are the scopes on the project, `admin` stands for administration of all. `tells` gives exactly the planted words.
    """

    ask: Callable[..., Told]
    about: str = ""
    needs: tuple[str, ...] = ("memory.read",)
    tells: Tells = lambda world, who, at: set()
    refs: tuple[str, ...] = tuple(READERS)
    hidden: str = "not_found"
    changes: bool = False
    open_to: frozenset[str] | None = None
    """Where the model names the people outright, in place of `needs`."""


def at_ref(world: PolicyWorld, who: str, at: str) -> set[str]:
    return world.words(who, at)


def at_main(world: PolicyWorld, who: str, at: object) -> set[str]:
    return world.words(who, MAIN)


def one_memory(world: PolicyWorld, who: str, at: Planted) -> set[str]:
    return {at.word} if at.word in world.words(who, at.ref) else set()


def one_changeset(world: PolicyWorld, who: str, at: Planted) -> set[str]:
    return {at.word} if admits(who, at.visibility) else set()


def searched(world: PolicyWorld, who: str, at: str) -> set[str]:
    return world.words(who, at, SEARCHERS)


def own_search(world: PolicyWorld, who: str, at: object) -> set[str]:
    return world.words(who, WORK if who == "one" else MAIN, SEARCHERS)


def pinned(world: PolicyWorld, who: str, at: object) -> set[str]:
    """What a manifest of `one`'s branch names: to its principal all of it, to an administrator what they may see."""
    words = {item.word: item.visibility for item in (*world.at(WORK), *world.at(MAIN))}
    return {word for word, visibility in words.items() if admits(who, visibility)}


def of_proposal(world: PolicyWorld, who: str, at: object) -> set[str]:
    return {"wordproposal", "wordreview"} | world.words_of_proposal(who)


def titled(world: PolicyWorld, who: str, at: object) -> set[str]:
    return {"wordproposal"} if who in SEES_PROPOSAL else set()


def since_main(world: PolicyWorld, who: str, at: str) -> set[str]:
    return world.words(who, at) - world.words(who, MAIN)


def own_branch(world: PolicyWorld, who: str, at: object) -> set[str]:
    """What a call without a ref tells: the working branch, or accepted memory where there is none."""
    return world.words(who, WORK if who == "one" else MAIN)


API = "/api/v1"
IN = f"{API}/projects/{PROJECT}"
ALL_WORDS = " ".join(
    f"word{space}{visibility}"
    for space in ("shared", "agents", "sessions", "topics", "repos")
    for visibility in ("private", "internal", "shared", "public")
)
ADD = {"op_type": "add_memory", "payload": {"content": "x"}}


def get(path: str, **params: Any) -> Callable[..., Told]:
    """Asks a route by GET; values may be functions of the world and what it is asked about."""
    return lambda desk, who, at: desk.http(
        who,
        "GET",
        _filled(path, desk.world, at),
        params={name: _filled(v, desk.world, at) for name, v in params.items()},
    )


def post(path: str, method: str = "POST", **body: Any) -> Callable[..., Told]:
    """Asks a route by a body."""
    return lambda desk, who, at: desk.http(
        who,
        method,
        _filled(path, desk.world, at),
        json={name: _filled(v, desk.world, at) for name, v in body.items()},
    )


def tool(name: str, **arguments: Any) -> Callable[..., Told]:
    return lambda desk, who, at: desk.tool(
        who, name, **{key: _filled(v, desk.world, at) for key, v in arguments.items()}
    )


def cli(*words: str) -> Callable[..., Told]:
    return lambda desk, who, at: desk.command(who, *(str(_filled(word, desk.world, at)) for word in words))


def _filled(value: Any, world: PolicyWorld, at: Any) -> Any:
    """Fills `{ref}`, `{memory}`, `{changeset}`, `{proposal}`, `{manifest}` and `{work}` (a changeset of `one` alone) in."""
    if not isinstance(value, str):
        return value
    planted = at if isinstance(at, Planted) else None
    ref = planted.ref if planted else at
    facts: Mapping[str, str] = {
        "ref": world.refs.get(ref, "") if isinstance(ref, str) else "",
        "memory": planted.memory_id if planted else "",
        "quoted": quote(planted.memory_id, safe="/") if planted else "",
        "changeset": planted.changeset_id if planted else "",
        "proposal": world.proposal_id,
        "manifest": world.manifest_id,
        "work": next(world.at(WORK)).changeset_id,
    }
    return re.sub(r"\{(\w+)\}", lambda found: facts.get(found[1], found[0]), value)


BRANCHES = (WORK, "refs/sessions/one/s1", TOPIC, "refs/repos/code/trunk")
BY_MEMORY = (MAIN, *BRANCHES)
ONE = frozenset({"one"})
ADMIN = ("admin of all",)
ADMIN_HERE = ("admin",)

HTTP: dict[str, Output] = {
    "GET /healthz": Output(get("/healthz"), needs=()),
    "GET /readyz": Output(get("/readyz"), needs=()),
    "GET /metrics": Output(get("/metrics"), needs=ADMIN),
    "GET /api/v1/whoami": Output(get(f"{API}/whoami"), needs=()),
    "GET /api/v1/projects": Output(get(f"{API}/projects"), needs=()),
    "GET /api/v1/projects/{project}/status": Output(get(f"{IN}/status")),
    "GET /api/v1/projects/{project}/refs": Output(get(f"{IN}/refs")),
    "GET /api/v1/projects/{project}/changesets": Output(
        get(f"{IN}/changesets", ref="{ref}", limit=50), "ref", tells=at_ref
    ),
    "GET /api/v1/projects/{project}/changesets/{changeset_id}": Output(
        get(f"{IN}/changesets/{{changeset}}"), "memory", tells=one_changeset, refs=BY_MEMORY
    ),
    "GET /api/v1/projects/{project}/diff": Output(
        get(f"{IN}/diff", target="{ref}", base=MAIN), "ref", tells=since_main
    ),
    "GET /api/v1/projects/{project}/memories": Output(
        get(f"{IN}/memories", ref="{ref}"), "ref", tells=at_ref
    ),
    "GET /api/v1/projects/{project}/memories/one": Output(
        get(f"{IN}/memories/one", ref="{ref}", id="{memory}"),
        "memory",
        tells=one_memory,
        refs=BY_MEMORY,
        hidden="not_found",
    ),
    "GET /api/v1/projects/{project}/memories/history": Output(
        get(f"{IN}/memories/history", ref="{ref}", id="{memory}"), "memory", tells=one_memory, refs=BY_MEMORY
    ),
    "GET /api/v1/projects/{project}/search": Output(
        get(f"{IN}/search", query=ALL_WORDS, ref="{ref}", limit=100),
        "ref",
        needs=("memory.search",),
        tells=searched,
    ),
    "POST /api/v1/projects/{project}/context": Output(
        post(f"{IN}/context", ref="{ref}", limit=100), "ref", tells=at_ref
    ),
    "GET /api/v1/projects/{project}/conflicts": Output(get(f"{IN}/conflicts")),
    "GET /api/v1/projects/{project}/proposals": Output(get(f"{IN}/proposals", status="open"), tells=titled),
    "GET /api/v1/proposals/{proposal_id}": Output(
        get(f"{API}/proposals/{{proposal}}"), "proposal", tells=of_proposal
    ),
    "GET /api/v1/manifests/{manifest_id}": Output(
        get(f"{API}/manifests/{{manifest}}"), "manifest", tells=pinned
    ),
    "GET /api/v1/manifests/{manifest_id}/reproduce": Output(
        get(f"{API}/manifests/{{manifest}}/reproduce"), "manifest", tells=pinned
    ),
    "GET /api/v1/projects/{project}/policy": Output(get(f"{IN}/policy")),
    "GET /api/v1/projects/{project}/redactions": Output(get(f"{IN}/redactions"), needs=("memory.redact",)),
    "GET /api/v1/principals": Output(get(f"{API}/principals"), needs=ADMIN),
    "GET /api/v1/obols": Output(get(f"{API}/obols"), needs=ADMIN),
    "GET /api/v1/grants": Output(get(f"{API}/grants"), needs=ADMIN),
    "GET /api/v1/ledger": Output(get(f"{API}/ledger"), needs=ADMIN),
    "GET /api/v1/ledger/verification": Output(get(f"{API}/ledger/verification"), needs=ADMIN),
    "POST /api/v1/projects": Output(post(f"{API}/projects", project="brandnew"), needs=ADMIN, changes=True),
    "POST /api/v1/projects/{project}/refs": Output(
        post(f"{IN}/refs", ref_name="refs/topics/mine", from_ref="{ref}"),
        "ref",
        needs=("memory.branch",),
        refs=BRANCHES,
        changes=True,
    ),
    "POST /api/v1/projects/{project}/changesets": Output(
        post(f"{IN}/changesets", ref=WORK, message="m", ops=[ADD], read_head=True),
        needs=("memory.commit",),
        open_to=ONE,
        hidden="denied",
        changes=True,
    ),
    "POST /api/v1/projects/{project}/conflicts/{conflict_id}/resolve": Output(
        post(f"{IN}/conflicts/{'0' * 64}/resolve", outcome="both", note="n"),
        needs=("memory.review",),
        open_to=frozenset(),
        changes=True,
    ),
    "POST /api/v1/projects/{project}/proposals": Output(
        post(f"{IN}/proposals", message="m", head_changeset_id="{work}"),
        needs=("memory.propose",),
        open_to=ONE,
        changes=True,
    ),
    "POST /api/v1/projects/{project}/reverts": Output(
        post(f"{IN}/reverts", changeset_id="{work}", message="m"),
        needs=("memory.branch", "memory.commit", "memory.propose"),
        open_to=ONE,
        changes=True,
    ),
    "POST /api/v1/projects/{project}/refs/rebase": Output(
        post(f"{IN}/refs/rebase", ref_name=WORK),
        needs=("memory.branch", "memory.commit"),
        open_to=ONE,
        changes=True,
    ),
    "POST /api/v1/proposals/{proposal_id}/review": Output(
        post(f"{API}/proposals/{{proposal}}/review", verdict="approve"),
        "proposal",
        needs=("memory.review",),
        changes=True,
    ),
    "POST /api/v1/proposals/{proposal_id}/merge": Output(
        post(f"{API}/proposals/{{proposal}}/merge"), "proposal", needs=("memory.merge",), changes=True
    ),
    "POST /api/v1/proposals/{proposal_id}/cancel": Output(
        post(f"{API}/proposals/{{proposal}}/cancel"), "proposal", needs=("memory.propose",), changes=True
    ),
    "POST /api/v1/proposals/{proposal_id}/rebase": Output(
        post(f"{API}/proposals/{{proposal}}/rebase"), "proposal", needs=("memory.propose",), changes=True
    ),
    "POST /api/v1/principals": Output(
        post(f"{API}/principals", principal_id="new", kind="agent"), needs=ADMIN, changes=True
    ),
    "POST /api/v1/principals/{principal_id}/disable": Output(
        post(f"{API}/principals/one/disable"), needs=ADMIN, changes=True
    ),
    "POST /api/v1/principals/{principal_id}/enable": Output(
        post(f"{API}/principals/one/enable"), needs=ADMIN, changes=True
    ),
    "POST /api/v1/principals/{principal_id}/actors": Output(
        post(f"{API}/principals/one/actors", actor_id="more"), needs=ADMIN, changes=True
    ),
    "POST /api/v1/principals/{principal_id}/sign-in": Output(
        post(f"{API}/principals/one/sign-in"), needs=ADMIN, changes=True
    ),
    "POST /api/v1/obols": Output(post(f"{API}/obols", principal_id="one"), needs=ADMIN, changes=True),
    "POST /api/v1/obols/{obol_id}/revoke": Output(
        post(f"{API}/obols/0011223344556677/revoke"), needs=ADMIN, changes=True
    ),
    "POST /api/v1/grants": Output(
        post(f"{API}/grants", principal_id="two", project=PROJECT), needs=ADMIN_HERE, changes=True
    ),
    "POST /api/v1/grants/revoke": Output(
        post(f"{API}/grants/revoke", principal_id="two", project=PROJECT), needs=ADMIN_HERE, changes=True
    ),
    "PATCH /api/v1/projects/{project}/policy": Output(
        post(f"{IN}/policy", "PATCH", changes={"approvals_needed": 2}), needs=ADMIN_HERE, changes=True
    ),
    "POST /api/v1/projects/{project}/redactions": Output(
        post(f"{IN}/redactions", memory_id="m/wordagentsprivate", reason="r"),
        needs=("memory.redact",),
        changes=True,
    ),
}
STREAMS = {"GET /api/v1/live": "tests/security/test_policy_model.py follows the feed by `may_see`"}

TOOLS: dict[str, Output] = {
    "memory_whoami": Output(tool("memory_whoami"), needs=()),
    "memory_status": Output(tool("memory_status", project=PROJECT), tells=titled),
    "memory_context_at": Output(
        tool("memory_context_at", project=PROJECT, ref="{ref}", limit=100), "ref", tells=at_ref
    ),
    "memory_diff": Output(
        tool("memory_diff", project=PROJECT, target="{ref}", base=MAIN), "ref", tells=since_main
    ),
    "memory_log": Output(
        tool("memory_log", project=PROJECT, ref="{ref}", limit=50),
        "ref",
        tells=at_ref,
    ),
    "memory_show": Output(
        tool("memory_show", project=PROJECT, changeset_id="{changeset}"),
        "memory",
        tells=one_changeset,
        refs=BY_MEMORY,
    ),
    "memory_ref_list": Output(tool("memory_ref_list", project=PROJECT)),
    "memory_conflicts": Output(tool("memory_conflicts", project=PROJECT)),
    "search": Output(tool("search", query=ALL_WORDS), needs=("memory.search",), tells=own_search),
    "fetch": Output(tool("fetch", id="proposal:{proposal}"), "proposal", tells=of_proposal),
    "memory_branch_create": Output(
        tool("memory_branch_create", project=PROJECT, ref="refs/topics/mine", from_ref="{ref}"),
        "ref",
        needs=("memory.branch",),
        refs=BRANCHES,
        changes=True,
    ),
    "memory_changeset_create": Output(
        tool("memory_changeset_create", project=PROJECT, ref=WORK, message="m", ops=[ADD], read_head=True),
        needs=("memory.commit",),
        open_to=ONE,
        hidden="denied",
        changes=True,
    ),
    "memory_merge_propose": Output(
        tool("memory_merge_propose", project=PROJECT, message="m", head_changeset_id="{work}"),
        needs=("memory.propose",),
        open_to=ONE,
        changes=True,
    ),
    "memory_revert_propose": Output(
        tool("memory_revert_propose", project=PROJECT, changeset_id="{work}"),
        needs=("memory.branch", "memory.commit", "memory.propose"),
        open_to=ONE,
        changes=True,
    ),
    "memory_merge_review": Output(
        tool("memory_merge_review", proposal_id="{proposal}", verdict="approve"),
        "proposal",
        needs=("memory.review",),
        changes=True,
    ),
    "memory_merge": Output(
        tool("memory_merge", proposal_id="{proposal}"), "proposal", needs=("memory.merge",), changes=True
    ),
    "memory_merge_cancel": Output(
        tool("memory_merge_cancel", proposal_id="{proposal}"),
        "proposal",
        needs=("memory.propose",),
        changes=True,
    ),
    "memory_rebase": Output(
        tool("memory_rebase", proposal_id="{proposal}"), "proposal", needs=("memory.propose",), changes=True
    ),
    "memory_conflict_resolve": Output(
        tool("memory_conflict_resolve", project=PROJECT, conflict_id="0" * 64, outcome="both", note="n"),
        needs=("memory.review",),
        open_to=frozenset(),
        changes=True,
    ),
    "memory_repo_init": Output(tool("memory_repo_init", project="brandnew"), needs=ADMIN, changes=True),
}


def resource(uri: str) -> Callable[..., Told]:
    return lambda desk, who, at: desk.resource(who, _filled(uri, desk.world, at))


RESOURCES: dict[str, Output] = {
    "memory://{project}/changesets/{changeset_id}": Output(
        resource(f"memory://{PROJECT}/changesets/{{changeset}}"),
        "memory",
        tells=one_changeset,
        refs=BY_MEMORY,
    ),
    "memory://{project}/proposals/{proposal_id}": Output(
        resource(f"memory://{PROJECT}/proposals/{{proposal}}"), "proposal", tells=of_proposal
    ),
    "memory://{project}/memories/{+memory_id}": Output(
        resource(f"memory://{PROJECT}/memories/{{quoted}}"), "memory", tells=one_memory, refs=(MAIN,)
    ),
    "memory://{project}/{+ref}": Output(resource(f"memory://{PROJECT}/{{ref}}"), "ref", tells=at_ref),
}


def prompt(name: str, **arguments: str) -> Callable[..., Told]:
    return lambda desk, who, at: desk.prompt(
        who, name, **{key: _filled(value, desk.world, at) for key, value in arguments.items()}
    )


PROMPTS: dict[str, Output] = {
    "review_proposal": Output(
        prompt("review_proposal", proposal_id="{proposal}"), "proposal", tells=of_proposal
    ),
    "summarise_changes": Output(
        prompt("summarise_changes", project=PROJECT, base=MAIN, target="{ref}"), "ref", tells=since_main
    ),
}


def completes(name: str, tells: Tells = lambda world, who, at: set()) -> Output:
    return Output(lambda desk, who, at: desk.completed(who, name), needs=(), tells=tells)


COMPLETIONS: dict[str, Output] = {
    "project": completes("project"),
    "ref": completes("ref"),
    "base": completes("base"),
    "target": completes("target"),
    "proposal_id": completes("proposal_id"),
    "changeset_id": completes("changeset_id"),
    "memory_id": completes("memory_id", own_branch),
}


def page(path: str, method: str = "GET", **data: str) -> Callable[..., Told]:
    return lambda desk, who, at: desk.page(
        who,
        method,
        _filled(path, desk.world, at),
        **({"data": data} if method == "POST" else {}),
    )


WAITING = "tells of an OAuth request under its own name, which only who was sent it knows; attacked by the tests of OAuth"
OAUTH = {
    "GET /.well-known/oauth-authorization-server": "tells of the server, nothing of memory",
    "GET /.well-known/oauth-authorization-server/{path:path}": "the same",
    "GET /.well-known/oauth-protected-resource": "the same",
    "GET /.well-known/oauth-protected-resource/{path:path}": "the same",
    "POST /oauth/register": "tells what it was given",
    "POST /oauth/token": "takes a code or a refresh token, and gives tokens",
    "POST /oauth/revoke": "tells nothing",
}
PAGES: dict[str, Output | str] = {
    "GET /oauth/authorize": WAITING,
    "GET /oauth/consent": WAITING,
    "POST /oauth/consent": WAITING,
    "GET /connections": Output(page("/connections"), needs=()),
    "POST /connections/{grant_id}/end": Output(
        page(f"/connections/{'0' * 32}/end", "POST"), needs=(), open_to=frozenset(), changes=True
    ),
    "GET /": Output(page("/"), needs=()),
    "GET /style.css": Output(page("/style.css"), needs=()),
    "GET /sign-in": Output(page("/sign-in"), needs=()),
    "POST /sign-in": Output(lambda desk, who, at: desk.page(who, "GET", "/sign-in"), needs=()),
    "POST /sign-out": Output(lambda desk, who, at: Told("ok", ""), needs=()),
    "GET /projects": Output(page("/projects"), needs=()),
    "GET /projects/{project}": Output(page(f"/projects/{PROJECT}"), tells=at_main),
    "GET /projects/{project}/memory": Output(
        page(f"/projects/{PROJECT}/memory?id={{quoted}}"), "memory", tells=one_memory, refs=(MAIN,)
    ),
    "GET /projects/{project}/proposals": Output(page(f"/projects/{PROJECT}/proposals"), tells=titled),
    "GET /projects/{project}/conflicts": Output(page(f"/projects/{PROJECT}/conflicts")),
    "POST /projects/{project}/conflicts/{conflict_id}/resolve": Output(
        page(f"/projects/{PROJECT}/conflicts/{'0' * 64}/resolve", "POST", outcome="both", note="n"),
        needs=("memory.review",),
        open_to=frozenset(),
        changes=True,
    ),
    "GET /proposals/{proposal_id}": Output(page("/proposals/{proposal}"), "proposal", tells=of_proposal),
    "POST /proposals/{proposal_id}/review": Output(
        page("/proposals/{proposal}/review", "POST", verdict="approve"),
        "proposal",
        needs=("memory.review",),
        changes=True,
    ),
    "POST /proposals/{proposal_id}/merge": Output(
        page("/proposals/{proposal}/merge", "POST"), "proposal", needs=("memory.merge",), changes=True
    ),
}

OWNERS = "works on the data directory, which its owner alone can open"
SERVES = "serves the faces that are tested here by themselves"
NOTHING = "tells nothing of memory"
COMMANDS: dict[str, Output | str] = {
    "charon serve": SERVES,
    "charon mcp": SERVES,
    "charon demo": SERVES,
    "charon completion": NOTHING,
    "charon config show": NOTHING,
    "charon doctor": NOTHING,
    "charon principal add": Output(
        cli("charon", "principal", "add", "new", "--kind", "agent"), needs=ADMIN, changes=True
    ),
    "charon principal disable": Output(
        cli("charon", "principal", "disable", "one"), needs=ADMIN, changes=True
    ),
    "charon principal list": Output(cli("charon", "principal", "list"), needs=ADMIN),
    "charon obol list": Output(cli("charon", "obol", "list"), needs=ADMIN),
    "charon obol mint": Output(cli("charon", "obol", "mint", "one"), needs=ADMIN, changes=True),
    "charon obol revoke": Output(
        cli("charon", "obol", "revoke", "0011223344556677"), needs=ADMIN, changes=True
    ),
    "charon grant add": Output(
        cli("charon", "grant", "add", "two", "--project", PROJECT), needs=ADMIN_HERE, changes=True
    ),
    "charon grant list": Output(cli("charon", "grant", "list"), needs=ADMIN),
    "charon grant revoke": Output(
        cli("charon", "grant", "revoke", "two", "--project", PROJECT), needs=ADMIN_HERE, changes=True
    ),
    "charon project init": Output(cli("charon", "project", "init", "brandnew"), needs=ADMIN, changes=True),
    "charon project list": Output(cli("charon", "project", "list"), needs=()),
    "charon project policy": Output(cli("charon", "project", "policy", PROJECT)),
    "charon proposal cancel": Output(
        cli("charon", "proposal", "cancel", "{proposal}"), "proposal", needs=("memory.propose",), changes=True
    ),
    "charon proposal create": Output(
        cli("charon", "proposal", "create", "--project", PROJECT, "--head", "{work}", "-m", "m"),
        needs=("memory.propose",),
        open_to=ONE,
        changes=True,
    ),
    "charon proposal list": Output(
        cli("charon", "proposal", "list", "--project", PROJECT, "--status", "open"), tells=titled
    ),
    "charon proposal merge": Output(
        cli("charon", "proposal", "merge", "{proposal}"), "proposal", needs=("memory.merge",), changes=True
    ),
    "charon proposal rebase": Output(
        cli("charon", "proposal", "rebase", "{proposal}"), "proposal", needs=("memory.propose",), changes=True
    ),
    "charon proposal revert": Output(
        cli("charon", "proposal", "revert", "{work}", "--project", PROJECT, "-m", "m"),
        needs=("memory.branch", "memory.commit", "memory.propose"),
        open_to=ONE,
        changes=True,
    ),
    "charon proposal review": Output(
        cli("charon", "proposal", "review", "{proposal}", "--verdict", "approve"),
        "proposal",
        needs=("memory.review",),
        changes=True,
    ),
    "charon proposal show": Output(
        cli("charon", "proposal", "show", "{proposal}"), "proposal", tells=of_proposal
    ),
    "charon oauth clients": OWNERS,
    "charon oauth connections": OWNERS,
    "charon oauth disable": OWNERS,
    "charon oauth end": OWNERS,
    "charon conflict list": Output(cli("charon", "conflict", "list", "--project", PROJECT)),
    "charon conflict resolve": Output(
        cli(
            "charon",
            "conflict",
            "resolve",
            "0" * 64,
            "--outcome",
            "both",
            "--note",
            "n",
            "--project",
            PROJECT,
        ),
        needs=("memory.review",),
        open_to=frozenset(),
        changes=True,
    ),
    "charon import": Output(
        lambda desk, who, at: desk.command(
            who, "charon", "import", _import_file(desk), "--project", PROJECT, "--ref", WORK
        ),
        needs=("memory.commit",),
        open_to=ONE,
        hidden="denied",
        changes=True,
    ),
    "charon ledger export": OWNERS,
    "charon ledger tail": Output(cli("charon", "ledger", "tail"), needs=ADMIN),
    "charon ledger verify": Output(cli("charon", "ledger", "verify"), needs=ADMIN),
    "charon secret list": OWNERS,
    "charon secret retire": OWNERS,
    "charon secret rotate": OWNERS,
    "charon backup": OWNERS,
    "charon restore": OWNERS,
    "charon reconcile": OWNERS,
    "charon redact": Output(
        cli("charon", "redact", "m/wordagentsprivate", "--project", PROJECT, "--reason", "r"),
        needs=("memory.redact",),
        changes=True,
    ),
    "lethe serve": "takes the store's one key, which is the gate's",
    "lethe memory status": OWNERS,
    "lethe memory log": OWNERS,
    "lethe memory show": OWNERS,
    "lethe memory diff": OWNERS,
    "lethe memory branch": OWNERS,
    "lethe memory context": OWNERS,
    "lethe memory manifest": OWNERS,
    "lethe memory merge": OWNERS,
    "lethe verify-chain": OWNERS,
    "lethe nodes drop": OWNERS,
    "lethe nodes rebuild": OWNERS,
    "lethe import-lethe": OWNERS,
    "lethe migrate": OWNERS,
    "lethe keygen": NOTHING,
    "lethe completion": NOTHING,
}


def _import_file(desk: Desk) -> str:
    path = Path(desk.world.folder).parent / "memory.jsonl"
    path.write_text('{"type":"entity","name":"x","entityType":"t","observations":["o"]}\n')
    return str(path)


def all_commands() -> set[str]:
    """Gives every command line of both programs that does something."""

    def under(name: str, command: click.Command) -> set[str]:
        if not isinstance(command, click.Group):
            return {name}
        found: set[str] = set()
        context = click.Context(command)
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            found |= under(f"{name} {part}", inner)
        return found

    return under("charon", charon.program) | under("lethe", lethe.program)


EVERY: dict[str, Output] = {
    **{f"http {name}": output for name, output in HTTP.items()},
    **{f"tool {name}": output for name, output in TOOLS.items()},
    **{f"resource {name}": output for name, output in RESOURCES.items()},
    **{f"prompt {name}": output for name, output in PROMPTS.items()},
    **{f"completion {name}": output for name, output in COMPLETIONS.items()},
    **{f"page {name}": output for name, output in PAGES.items() if isinstance(output, Output)},
    **{f"command {name}": output for name, output in COMMANDS.items() if isinstance(output, Output)},
}
