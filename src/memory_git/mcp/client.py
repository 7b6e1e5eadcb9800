"""A small agent client over MCP, for programs that are not asynchronous: the demo, the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, TextIO

from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, PromptReference, TextContent, TextResourceContents, Tool

from memory_git.mcp.errors import REFUSAL
from memory_git.mcp.remote import TIMEOUT_S, connected
from memory_git.mcp.schemas import Json


class ToolRefused(Exception):
    """A tool answered with an error: its stable code, its message, the facts beside; `told` is what a model reads."""

    def __init__(self, code: str, message: str, facts: Json, told: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.facts = facts
        self.told = told


class AgentClient:
    """A connected agent; a context manager that leaves when it ends. `mode` is the SDK's: auto, legacy, or a version."""

    def __init__(self, opened: Any) -> None:
        self._stack = ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal())
        try:
            self._client: Client = self._stack.enter_context(self._portal.wrap_async_context_manager(opened))
        except BaseException:
            self._stack.close()
            raise

    @classmethod
    def stdio(
        cls,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        mode: str = "auto",
        errors: TextIO | None = None,
    ) -> AgentClient:
        """Starts a server process and connects to it; `errors` takes its standard error, by default this process's own."""
        parameters = StdioServerParameters(
            command=command[0], args=list(command[1:]), env=dict(env) if env is not None else None
        )
        transport = stdio_client(parameters) if errors is None else stdio_client(parameters, errors)
        return cls(Client(transport, mode=mode, read_timeout_seconds=TIMEOUT_S, cache=None))

    @classmethod
    def http(cls, url: str, token: str | None, *, mode: str = "auto") -> AgentClient:
        """Connects to the address of an MCP endpoint (`.../mcp?toolsets=all`) with a bearer; raises as `remote.connected` does."""
        return cls(connected(url, token, mode))

    def __enter__(self) -> AgentClient:
        """Gives the client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves."""
        self.close()

    def close(self) -> None:
        """Leaves; a server process that was started ends."""
        self._stack.close()

    @property
    def protocol_version(self) -> str:
        """The version of the protocol that was agreed on."""
        return self._client.protocol_version

    def tools(self) -> list[Tool]:
        """Gives the tools that this principal is offered."""
        tools = self._portal.call(self._client.list_tools).tools
        return list(tools)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Json:
        """Calls a tool and gives its structured answer; raises ToolRefused."""
        return self.called(name, arguments).structured_content or {}

    def told(self, name: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Calls a tool and gives the text that a model reads; raises ToolRefused."""
        return _text(self.called(name, arguments))

    def called(
        self, name: str, arguments: Mapping[str, Any] | None = None, heard: ProgressFnT | None = None
    ) -> CallToolResult:
        """Calls a tool and gives its whole result; `heard` is told of progress. Raises ToolRefused."""
        call = partial(self._client.call_tool, name, dict(arguments or {}), progress_callback=heard)
        result: CallToolResult = self._portal.call(call)
        if result.is_error:
            raise _refusal(result)
        return result

    def read(self, uri: str) -> str:
        """Gives the text of a resource."""
        contents = self._portal.call(self._client.read_resource, uri).contents
        return "\n".join(item.text for item in contents if isinstance(item, TextResourceContents))

    def prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> str:
        """Gives the text of a prompt."""
        messages = self._portal.call(self._client.get_prompt, name, dict(arguments or {})).messages
        return "\n".join(item.content.text for item in messages if isinstance(item.content, TextContent))

    def completions(self, prompt: str, name: str, begun: str) -> list[str]:
        """Gives what may go on from what is begun of a prompt's argument."""
        reference = PromptReference(type="ref/prompt", name=prompt)
        call = partial(self._client.complete, reference, {"name": name, "value": begun})
        return list(self._portal.call(call).completion.values)

    def templates(self) -> list[str]:
        """Gives the addresses of the resource templates."""
        found = self._portal.call(self._client.list_resource_templates).resource_templates
        return [item.uri_template for item in found]

    def prompts(self) -> list[str]:
        """Gives the names of the prompts."""
        return [item.name for item in self._portal.call(partial(self._client.list_prompts)).prompts]


def _refusal(result: CallToolResult) -> ToolRefused:
    facts: Json = dict((result.meta or {}).get(REFUSAL, {}))
    text = _text(result)
    return ToolRefused(facts.pop("code", "tool_error"), facts.pop("message", text), facts, text)


def _text(result: CallToolResult) -> str:
    return "\n".join(item.text for item in result.content if isinstance(item, TextContent))
