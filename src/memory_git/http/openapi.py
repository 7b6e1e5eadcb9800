"""The description that a face gives of itself: true servers, security, error answers; held against the server by a test."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

_PROBLEM_REF = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_REASONS = {
    400: "The request breaks a rule; `faults` lists every one",
    401: "No bearer, or not the right one",
    403: "Not allowed",
    404: "Absent, or not for this caller to know of",
    409: "Lost to another state of things; the document holds what is needed to go on",
    413: "The request or its answer is larger than the cap",
    429: "Over a rate or quota",
    500: "A stored object is corrupt, or something unexpected happened",
    503: "Can't be taken now; a retry may succeed",
}
_ALWAYS = (400, 401, 403, 404, 413, 429, 500, 503)
_PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457, with a stable code and the facts of the case beside",
    "required": ["type", "title", "status", "detail", "error", "message", "code"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "error": {"type": "string"},
        "message": {"type": "string"},
        "code": {"type": "string"},
        "faults": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "rule"],
                "properties": {
                    "ordinal": {"type": ["integer", "null"]},
                    "field": {"type": "string"},
                    "rule": {"type": "string"},
                    "found": {"type": "string"},
                },
            },
        },
    },
    "additionalProperties": True,
}


def answers(
    model: Any, *more: int, status: int = 200, also: dict[int, Any] | None = None
) -> dict[int | str, Any]:
    """Gives the `responses` of a route: its answer, the errors that every route may give, and more of its own."""
    said: dict[int | str, Any] = {status: {"model": model, "description": "Done"}}
    for other, other_model in (also or {}).items():
        said[other] = {"model": other_model, "description": "Done"}
    for code in sorted({*_ALWAYS, *more}):
        said[code] = {"description": _REASONS[code], **_PROBLEM_REF}
    return said


def plain(media_type: str, *more: int) -> dict[int | str, Any]:
    """Gives the `responses` of a route whose answer is no JSON."""
    said: dict[int | str, Any] = {
        200: {"description": "Done", "content": {media_type: {"schema": {"type": "string"}}}}
    }
    return said | {
        code: {"description": _REASONS[code], **_PROBLEM_REF} for code in sorted({*_ALWAYS, *more})
    }


def body_of(model: Any, max_bytes: int | None = None) -> dict[str, Any]:
    """Gives the `openapi_extra` of a route whose body has a cap of its own."""
    extra: dict[str, Any] = {"x-max-bytes": max_bytes} if max_bytes else {}
    if model is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": model}}}
    return extra


def describe(app: FastAPI, open_paths: Collection[str]) -> None:
    """Makes the application serve its description with one bearer scheme and problem documents for errors."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app, open_paths)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _document(app: FastAPI, open_paths: Collection[str]) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
        servers=app.servers,
        tags=app.openapi_tags,
        license_info=app.license_info,
    )
    components = document.setdefault("components", {})
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = _PROBLEM_SCHEMA
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    document["security"] = [{"bearer": []}]
    for path, item in document["paths"].items():
        for operation in item.values():
            operation["responses"].pop("422", None)
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _without_null(parameter["schema"])
            if path in open_paths:
                operation["security"] = []
    return document


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Gives the schema of a parameter, which is absent or a value: a query can't say null."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf" and value is not None}
    items = {**kinds[0].get("items", {}), **rest.pop("items", {})}
    return {**kinds[0], **rest, **({"items": items} if items else {})}
