"""The tools, resources and prompts that the MCP conformance suite asks of a server, beside the product's own server.

It stands in the tests alone: nothing of the package imports it, no setting names it. Its principal is an ordinary one of a gate
in a disposable folder, whose token is put on each request that brings none, for the suite sends none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.mcpserver.tools import Tool
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPError
from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    JSONRPCMessage,
    ListRootsRequest,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_git.charon.gate import Gate
from memory_git.http.serving import running
from memory_git.mcp.http import application, http_server
from memory_git.mcp.server import MemoryServer

PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
        "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
    )
).decode()
WAV = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\0\0\0\0"
).decode()
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
Ctx = Context[Any, Any]


@contextmanager
def serving(folder: Path, *, sessions: bool) -> Iterator[str]:
    """Serves the product's MCP face with the fixtures beside, and gives its address; `sessions` for the era that has them."""
    gate = Gate.open(folder)
    token = _principal(gate)
    server = http_server(gate)
    add_fixtures(server)
    transport = {"stateless_http": False, "event_store": Events(), "retry_interval": 100} if sessions else {}
    app = Bearing(application(server, **transport), token)
    try:
        with running(app, on_stop=gate.feed.close) as where:
            yield f"{where.url}/mcp"
    finally:
        gate.close()


def _principal(gate: Gate) -> str:
    local = gate.as_operator()
    gate.init_project(local, "atlas")
    gate.add_principal(local, "suite", "agent", profile="propose")
    gate.grant(local, "suite", "atlas")
    return str(gate.mint_obol(local, "suite", 3600, project="atlas")["token"])


class Bearing:
    """Puts a token on each request that brings none."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.header = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            scope = {**scope, "headers": [*scope["headers"], self.header]}
        await self.app(scope, receive, send)


class Events(EventStore):
    """The events of streams, kept in memory so that a client that lost one can go on."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self.kept.append((stream_id, message))
        return str(len(self.kept))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        place = int(last_event_id)
        if not 0 < place <= len(self.kept):
            return None
        stream_id = self.kept[place - 1][0]
        for number, (of, message) in enumerate(self.kept[place:], place + 1):
            if of == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id


def add_fixtures(server: MemoryServer) -> None:
    """Adds everything that the suite looks for."""
    for add in (
        _contents,
        _progress,
        _asking_back,
        _asking_in_rounds,
        _schemas,
        _resources,
        _prompts,
        _old_methods,
    ):
        add(server)


def _text(text: str) -> list[ContentBlock]:
    return [TextContent(type="text", text=text)]


def _embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    )


def _contents(server: MemoryServer) -> None:
    image = ImageContent(type="image", data=PNG, mime_type="image/png")

    @server.tool("test_simple_text", description="Gives a text.", structured_output=False)
    def simple_text() -> str:
        return "This is a simple text response for testing."

    @server.tool("test_image_content", description="Gives a picture.", structured_output=False)
    def image_content() -> list[ContentBlock]:
        return [image]

    @server.tool("test_audio_content", description="Gives a sound.", structured_output=False)
    def audio_content() -> list[ContentBlock]:
        return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]

    @server.tool("test_embedded_resource", description="Gives a resource.", structured_output=False)
    def embedded_resource() -> list[ContentBlock]:
        return [_embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]

    @server.tool("test_multiple_content_types", description="Gives all kinds.", structured_output=False)
    def multiple_content_types() -> list[ContentBlock]:
        data = json.dumps({"test": "data", "value": 123})
        mixed = _embedded("test://mixed-content-resource", "application/json", data)
        return [*_text("Multiple content types test:"), image, mixed]

    @server.tool("test_error_handling", description="Refuses.", structured_output=False)
    def error_handling() -> str:
        raise ToolError("This tool intentionally returns an error for testing")


def _progress(server: MemoryServer) -> None:
    @server.tool("test_tool_with_progress", description="Tells how far it is.", structured_output=False)
    async def with_progress(ctx: Ctx) -> str:
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100, f"{done} of 100")
            await anyio.sleep(0.05)
        return "done"

    async def log(ctx: Ctx) -> str:
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)
            await anyio.sleep(0.05)
        return "done"

    for name in ("test_tool_with_logging", "test_logging_tool"):
        server.add_tool(log, name, description="Logs to the client.", structured_output=False)

    @server.tool("test_trigger_tool_change", description="Says that tools changed.", structured_output=False)
    async def tool_change(ctx: Ctx) -> str:
        await ctx.notify_tools_changed()
        return "done"

    @server.tool(
        "test_trigger_prompt_change", description="Says that prompts changed.", structured_output=False
    )
    async def prompt_change(ctx: Ctx) -> str:
        await ctx.notify_prompts_changed()
        return "done"

    @server.tool("test_reconnection", description="Ends its stream midway.", structured_output=False)
    async def reconnection(ctx: Ctx) -> str:
        await ctx.close_sse_stream()
        await anyio.sleep(0.3)
        return "Reconnection test completed"


ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": f"value{n}", "title": f"{word} Option"}
                for n, word in ((1, "First"), (2, "Second"), (3, "Third"))
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": f"value{n}", "title": f"{word} Choice"}
                    for n, word in ((1, "First"), (2, "Second"), (3, "Third"))
                ]
            },
        },
    },
}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
USER = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}


def _asking_back(server: MemoryServer) -> None:
    """What asks the client over the back channel, which the era of sessions has."""

    async def elicited(ctx: Ctx, message: str, schema: dict[str, Any]) -> str:
        answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
        return f"action={answer.action}, content={json.dumps(answer.content)}"

    @server.tool("test_sampling", description="Asks the client's model.", structured_output=False)
    async def sampling(prompt: str, ctx: Ctx) -> str:
        asked = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        answer = await ctx.session.create_message([asked], max_tokens=100, related_request_id=ctx.request_id)
        return f"LLM response: {answer.content}"

    @server.tool("test_elicitation", description="Asks the person.", structured_output=False)
    async def elicitation(message: str, ctx: Ctx) -> str:
        return f"User response: {await elicited(ctx, message, USER)}"

    @server.tool(
        "test_elicitation_sep1034_defaults", description="Asks with defaults.", structured_output=False
    )
    async def defaults(ctx: Ctx) -> str:
        return f"Elicitation completed: {await elicited(ctx, 'Check these', DEFAULTS)}"

    @server.tool("test_elicitation_sep1330_enums", description="Asks with choices.", structured_output=False)
    async def enums(ctx: Ctx) -> str:
        return f"Elicitation completed: {await elicited(ctx, 'Choose', ENUMS)}"


def _form(message: str, **properties: str) -> ElicitRequest:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str, max_tokens: int = 100) -> CreateMessageRequest:
    asked = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[asked], max_tokens=max_tokens))


NAME = {"user_name": _form("What is your name?", name="string")}
CONFIRM = {"confirm": _form("Please confirm", ok="boolean")}
CAPITAL = {"capital_question": _sample("What is the capital of France?")}
ROOTS = {"client_roots": ListRootsRequest()}
Rounds = CallToolResult | InputRequiredResult


def _needs(ctx: Ctx, requests: dict[str, Any], state: str | None = None) -> InputRequiredResult | None:
    """Gives what is still to be asked, or None once every request is answered soundly."""
    answers = ctx.input_responses or {}
    if all(_is_answer(answers.get(name), request) for name, request in requests.items()):
        return None
    return InputRequiredResult(input_requests=requests, request_state=state)


def _is_answer(answer: Any, request: Any) -> bool:
    if answer is None:
        return False
    if not isinstance(request, ElicitRequest):
        return True
    content = getattr(answer, "content", None)
    wanted = request.params.requested_schema["required"]
    return isinstance(content, dict) and all(name in content for name in wanted)


def _said(text: str) -> CallToolResult:
    return CallToolResult(content=_text(text))


def _asking_in_rounds(server: MemoryServer) -> None:
    """What asks by an answer that says which input is missing, and is called again with it."""

    def asks(name: str, requests: dict[str, Any], text: str, state: str | None = None) -> None:
        async def tool(ctx: Ctx) -> Rounds:
            return _needs(ctx, requests, state) or _said(text.format(answers=ctx.input_responses))

        server.add_tool(tool, name, description="Asks in rounds.", structured_output=False)

    asks("test_input_required_result_elicitation", NAME, "Hello, {answers}!")
    asks("test_input_required_result_sampling", CAPITAL, "The model said {answers}")
    asks("test_input_required_result_list_roots", ROOTS, "Roots: {answers}")
    asks("test_input_required_result_request_state", CONFIRM, "state-ok", "confirming")
    asks("test_input_required_result_tampered_state", CONFIRM, "state-ok", "confirming")
    everything = {**NAME, "greeting": _sample("Generate a greeting", 50), **ROOTS}
    asks("test_input_required_result_multiple_inputs", everything, "All: {answers}", "all")

    @server.tool("test_input_required_result_multi_round", description="Asks twice.", structured_output=False)
    async def multi_round(ctx: Ctx) -> Rounds:
        if ctx.request_state == "round-2":
            return _needs(
                ctx, {"step2": _form("Step 2: What is your favorite color?", color="string")}, "round-2"
            ) or _said("done")
        first = {"step1": _form("Step 1: What is your name?", name="string")}
        second = {"step2": _form("Step 2: What is your favorite color?", color="string")}
        if ctx.request_state == "round-1" and _needs(ctx, first) is None:
            return InputRequiredResult(input_requests=second, request_state="round-2")
        return InputRequiredResult(input_requests=first, request_state="round-1")

    @server.tool(
        "test_input_required_result_capabilities", description="Asks what can be.", structured_output=False
    )
    async def capabilities(ctx: Ctx) -> Rounds:
        declared = ctx.client_capabilities
        requests: dict[str, Any] = {}
        if declared is not None and declared.elicitation is not None:
            requests |= NAME
        if declared is not None and declared.sampling is not None:
            requests |= CAPITAL
        return _needs(ctx, requests) or _said("done")

    @server.tool("test_streaming_elicitation", description="Streams, then asks.", structured_output=False)
    async def streaming(ctx: Ctx) -> Rounds:
        await ctx.report_progress(1, 2)
        return _needs(ctx, NAME) or _said("done")

    @server.tool(
        "test_missing_capability", description="Needs a client that samples.", structured_output=False
    )
    async def missing_capability(ctx: Ctx) -> Rounds:
        declared = ctx.client_capabilities
        if declared is None or declared.sampling is None:
            raise MCPError(-32021, "sampling is needed", {"requiredCapabilities": {"sampling": {}}})
        return _needs(ctx, CAPITAL) or _said("done")


def _schemas(server: MemoryServer) -> None:
    def echo(name: str = "") -> str:
        return name

    def region(region: str) -> str:
        return region

    described = (
        (echo, "json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", SCHEMA_2020_12),
        (
            region,
            "test_custom_headers",
            "Takes an argument that a header repeats.",
            {
                "type": "object",
                "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
                "required": ["region"],
            },
        ),
    )
    for function, name, description, schema in described:
        tool = Tool.from_function(function, name=name, description=description, structured_output=False)
        server._tool_manager._tools[name] = tool.model_copy(update={"parameters": schema})


def _resources(server: MemoryServer) -> None:
    @server.resource("test://static-text", name="static text", description="A text.", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource(
        "test://static-binary", name="static binary", description="Bytes.", mime_type="image/png"
    )
    def static_binary() -> bytes:
        return base64.b64decode(PNG)

    @server.resource("test://watched-resource", name="watched", description="A text.", mime_type="text/plain")
    def watched() -> str:
        return "watched"

    @server.resource(
        "test://template/{id}/data", name="template", description="By id.", mime_type="application/json"
    )
    def template(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _prompts(server: MemoryServer) -> None:
    @server.prompt("test_simple_prompt", description="A prompt.")
    def simple() -> str:
        return "This is a simple prompt for testing."

    @server.prompt("test_prompt_with_arguments", description="A prompt of two arguments.")
    def with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt("test_prompt_with_embedded_resource", description="A prompt with a resource.")
    def with_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803
        embedded = _embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [UserMessage(embedded), UserMessage("Please process the embedded resource above.")]

    @server.prompt("test_prompt_with_image", description="A prompt with a picture.")
    def with_image() -> list[UserMessage]:
        image = ImageContent(type="image", data=PNG, mime_type="image/png")
        return [UserMessage(image), UserMessage("Please analyze the image above.")]

    @server.prompt("test_input_required_result_prompt", description="A prompt that asks.")
    async def asking(ctx: Ctx) -> list[UserMessage] | InputRequiredResult:
        asked = _needs(ctx, {"user_context": _form("What context should the prompt use?", context="string")})
        return asked or [UserMessage(f"Use {ctx.input_responses}")]


def _old_methods(server: MemoryServer) -> None:
    """What the era of sessions had, and the product has no use for."""

    async def nothing(_: Any, _params: Any) -> EmptyResult:
        return EmptyResult()

    for method, params in (
        ("logging/setLevel", SetLevelRequestParams),
        ("resources/subscribe", SubscribeRequestParams),
        ("resources/unsubscribe", UnsubscribeRequestParams),
    ):
        server._lowlevel_server.add_request_handler(method, params, nothing)
