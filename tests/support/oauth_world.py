"""A gate served whole (API, MCP, pages, OAuth), a person with a browser, and a client that does OAuth by hand."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from gate_world import PROJECT, GateWorld

from memory_git.http.charon_app import create_charon_app, mount_mcp
from memory_git.http.serving import running
from memory_git.mcp.http import mcp_app
from memory_git.web.app import create_pages

BACK = "http://127.0.0.1/back"
_ADDRESS = re.compile(r'<meta http-equiv="refresh" content="0;url=([^"]+)"')
_FIELD = re.compile(r'name="(form_token|request|agent)" value="([^"]*)"')


@dataclass
class Person:
    """Somebody signed in in a browser that keeps cookies and follows no redirect by itself."""

    url: str
    http: httpx.Client
    shown: httpx.Response | None = None

    def opens(self, address: str) -> httpx.Response:
        """Goes where a client sends the browser: the first page, and on to the consent where it leads there."""
        self.shown = self.http.get(address)
        found = _ADDRESS.search(self.shown.text)
        if self.shown.status_code == 200 and found:
            self.shown = self.http.get(unescape(found.group(1)))
        return self.shown

    def form(self) -> dict[str, str]:
        assert self.shown is not None
        return {name: unescape(value) for name, value in _FIELD.findall(self.shown.text)}

    def decides(self, project: str = PROJECT, scopes: Any = None, **changes: str) -> httpx.Response:
        """Sends the consent's form as it stands, with some fields otherwise."""
        assert self.shown is not None
        offered = re.findall(r'name="scope:([a-z.]+)"', self.shown.text)
        ticked = {f"scope:{scope}": "on" for scope in (offered if scopes is None else scopes)}
        form = {**self.form(), "project": project, **ticked, "decision": "allow", **changes}
        return self.http.post("/oauth/consent", data=form)


@dataclass
class Client:
    """A client by hand: each step may be done wrongly."""

    url: str
    client_id: str
    redirect_uri: str = BACK
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    state: str = field(default_factory=lambda: secrets.token_urlsafe(8))

    def challenge(self) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()

    def address(self, **changes: str | None) -> str:
        asked: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": self.state,
            "code_challenge": self.challenge(),
            "code_challenge_method": "S256",
            "resource": f"{self.url}/mcp",
        }
        said = {name: value for name, value in {**asked, **changes}.items() if value is not None}
        return f"{self.url}/oauth/authorize?{urlencode(said)}"

    def token(self, **changes: str | None) -> httpx.Response:
        asked: dict[str, str | None] = {
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            "grant_type": "authorization_code",
            "resource": f"{self.url}/mcp",
        }
        said = {name: value for name, value in {**asked, **changes}.items() if value is not None}
        return httpx.post(f"{self.url}/oauth/token", data=said)

    def refresh(self, token: str, **changes: str | None) -> httpx.Response:
        fields: dict[str, str | None] = {
            "grant_type": "refresh_token",
            "refresh_token": token,
            "redirect_uri": None,
            "code_verifier": None,
        }
        return self.token(**{**fields, **changes})


@dataclass
class OAuthWorld:
    """A gate world behind real sockets."""

    world: GateWorld
    url: str

    def registers(self, **metadata: Any) -> httpx.Response:
        said = {"client_name": "Notes", "redirect_uris": [BACK], **metadata}
        return httpx.post(f"{self.url}/oauth/register", json=said)

    def client(self, **metadata: Any) -> Client:
        return Client(self.url, self.registers(**metadata).json()["client_id"])

    @contextmanager
    def person(self, name: str = "ann") -> Iterator[Person]:
        with httpx.Client(base_url=self.url) as http:
            http.post("/sign-in", data={"token": self.world.tokens[name]})
            yield Person(self.url, http)

    def code(self, client: Client, name: str = "ann", scopes: Any = None, **changes: str) -> str:
        """Lets a client in and gives the code that it is sent."""
        with self.person(name) as person:
            person.opens(client.address())
            answer = person.decides(scopes=scopes, **changes)
            assert answer.status_code == 303, answer.text
            return answered(answer)["code"]

    def tokens(self, client: Client, name: str = "ann", **how: Any) -> dict[str, Any]:
        """Lets a client in and gives what it gets for its code."""
        answer = client.token(code=self.code(client, name, **how))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def calls(self, token: str, path: str = "/mcp") -> httpx.Response:
        """Sends a request to a face with a token."""
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        if path == "/mcp":
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            return httpx.post(f"{self.url}{path}", json=body, headers=headers)
        return httpx.get(f"{self.url}{path}", headers=headers)


def answered(answer: httpx.Response) -> dict[str, str]:
    """Gives what a redirect tells the client."""
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


@contextmanager
def served(folder: Path, **settings: Any) -> Iterator[OAuthWorld]:
    """Serves a gate world; `ann`, `bob` and `cy` are people."""
    world = GateWorld(folder, **settings)
    try:
        app = create_charon_app(world.gate, pages=create_pages(world.gate))
        with running(app, on_stop=world.gate.feed.close) as where:
            mount_mcp(app, mcp_app(world.gate, server_url=where.url))
            yield OAuthWorld(world, where.url)
    finally:
        world.close()
