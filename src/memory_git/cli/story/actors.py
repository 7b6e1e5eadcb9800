"""Who acts in the story: an agent over MCP, a person over HTTP, an operator at the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import httpx

from memory_git.cli.story.expect import StepFailed
from memory_git.domain import errors
from memory_git.lethe.client_errors import error_of
from memory_git.mcp.client import AgentClient, ToolRefused

TIMEOUT_S = 60.0


class Agent:
    """A model's client with a token, over MCP."""

    def __init__(self, client: AgentClient, model: str) -> None:
        self._client = client
        self._model = model

    def call(self, tool: str, **arguments: Any) -> Any:
        """Gives what a tool answers, the exact value; raises ToolRefused."""
        answer = dict(self._client.call(tool, arguments))
        answer.pop("trust", None)
        return answer

    def refused(self, tool: str, **arguments: Any) -> ToolRefused:
        """Gives the refusal with which a call must fail."""
        answer = self.refused_or(tool, **arguments)
        if isinstance(answer, ToolRefused):
            return answer
        raise StepFailed(f"{tool} was let through: {str(answer)[:200]}")

    def refused_or(self, tool: str, **arguments: Any) -> Any:
        """Gives the refusal of a call, or its answer."""
        try:
            return self.call(tool, **arguments)
        except ToolRefused as refused:
            return refused

    def commit(self, ref: str, ops: list[Any], message: str, key: str, **more: Any) -> Any:
        """Commits ops and gives the changeset, as the agent then reads it."""
        made = self.call(
            "memory_changeset_create",
            ref=ref,
            ops=ops,
            message=message,
            idempotency_key=key,
            model=self._model,
            **more,
        )
        return self.call("memory_show", changeset_id=made["changeset_id"])

    def tools(self) -> Any:
        """Gives the tools that this principal is offered."""
        return self._client.tools()

    def templates(self) -> list[str]:
        """Gives the addresses of the resource templates."""
        return self._client.templates()

    def prompts(self) -> list[str]:
        """Gives the names of the prompts."""
        return self._client.prompts()

    def prompt(self, name: str, **arguments: str) -> str:
        """Gives the text of a prompt."""
        return self._client.prompt(name, arguments)

    def read(self, uri: str) -> str:
        """Gives the text of a resource."""
        return self._client.read(uri)

    def close(self) -> None:
        """Leaves."""
        self._client.close()


class Person:
    """Somebody with a token, over Charon's HTTP API."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.Client(
            base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT_S
        )

    def get(self, path: str, **query: Any) -> Any:
        """Gives what a GET answers; raises the refusal of a problem document."""
        return self._answer(
            self._http.get(path, params={name: value for name, value in query.items() if value is not None})
        )

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Gives what a POST answers; raises the refusal of a problem document."""
        return self._answer(self._http.post(path, json=dict(body or {})))

    def raw(self, path: str) -> tuple[int, bytes]:
        """Gives the status and the exact bytes that a GET answers."""
        response = self._http.get(path)
        return response.status_code, response.content

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    @staticmethod
    def _answer(response: httpx.Response) -> Any:
        if response.status_code >= 400:
            raise error_of(response.status_code, response.content)
        return response.json()


class Operator:
    """Somebody at the command line of the machine: each call is a process of its own."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)

    def run(self, *arguments: str) -> Any:
        """Runs `charon …` or `lethe …` with --json and gives the document; raises the refusal that it prints."""
        exit_code, document = self.try_run(*arguments)
        if exit_code != 0:
            raise _refusal_of_document(exit_code, document)
        return document

    def try_run(self, *arguments: str) -> tuple[int, Any]:
        """Runs a command with --json and gives its exit code and document, whatever it is."""
        program, *rest = arguments
        done = subprocess.run(
            [sys.executable, "-m", f"memory_git.cli.{program}", *rest, "--json"],
            env=self._environment,
            capture_output=True,
            timeout=TIMEOUT_S * 2,
            check=False,
        )
        try:
            return done.returncode, json.loads(done.stdout or b"null")
        except json.JSONDecodeError:
            shown = done.stdout.decode(errors="replace")[:300] + done.stderr.decode(errors="replace")[:500]
            raise StepFailed(f"{' '.join(arguments)} printed no JSON document: {shown}") from None


def _refusal_of_document(exit_code: int, document: Any) -> Exception:
    if not isinstance(document, dict) or "code" not in document:
        return StepFailed(f"a command ended with {exit_code} and told no code: {str(document)[:300]}")
    facts = {
        name: value
        for name, value in document.items()
        if name not in {"type", "title", "status", "detail", "error", "message", "code"}
    }
    code = str(document["code"])
    return errors.Refused(code, document.get("message", ""), **facts)
