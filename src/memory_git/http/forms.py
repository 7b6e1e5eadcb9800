"""How the description says what names and numbers look like (3-model, ids and names).

It says what the store's own checks ask for, so that a client's tools refuse early what would be refused anyway. It checks nothing: the
same request is refused in the same words with and without HTTP between.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from memory_git.domain.ids import RESERVED_PROJECTS
from memory_git.domain.policy import VISIBILITIES

_COMPONENT = r"[A-Za-z0-9](?:[A-Za-z0-9_@+-]|\.(?![.]|lock(?:/|$))){0,127}"
_PARTED = "|".join(("agents", "sessions", "repos"))
_ANY_VISIBILITY = f"(?:{'|'.join(VISIBILITIES)})"
_PROJECT: dict[str, Any] = {
    "pattern": r"^[a-z0-9][a-z0-9._-]{0,127}$",
    "not": {"enum": sorted(RESERVED_PROJECTS)},
    "examples": ["atlas"],
}
_REF: dict[str, Any] = {
    "pattern": rf"^refs/(?:(?:shared|topics|proposals)/{_COMPONENT}|(?:{_PARTED})/{_COMPONENT}/{_COMPONENT})$",
    "maxLength": 512,
    "examples": ["refs/shared/main"],
}
_REF_OR_NONE = {**_REF, "pattern": f"^(?:{_REF['pattern'][1:-1]})?$"}
_NAME: dict[str, Any] = {"minLength": 1}
_MEMORY: dict[str, Any] = {"pattern": r"^[^\p{Cc}]+$", "maxLength": 1024}

Project = Annotated[str, Path(json_schema_extra=_PROJECT)]
ProjectQuery = Annotated[str, Query(json_schema_extra=_PROJECT)]
ProjectId = Annotated[str, Field(json_schema_extra=_PROJECT)]
RefQuery = Annotated[str, Query(json_schema_extra=_REF)]
RefName = Annotated[str, Field(json_schema_extra=_REF)]
RefOrNone = Annotated[str, Query(json_schema_extra=_REF_OR_NONE)]
RefNameOrNone = Annotated[str, Field(json_schema_extra=_REF_OR_NONE)]
Name = Annotated[str, Field(json_schema_extra=_NAME)]
After = Annotated[int, Query(ge=0, le=2**53 - 1)]
UpTo100 = Annotated[int, Query(json_schema_extra={"minimum": 1, "maximum": 100})]
UpTo200 = Annotated[int, Query(json_schema_extra={"minimum": 1, "maximum": 200})]
UpTo1000 = Annotated[int, Query(json_schema_extra={"minimum": 1, "maximum": 1000})]
Reader = Annotated[
    str | None,
    Query(description="The principal to read for; absent: everything", json_schema_extra={"minLength": 1}),
]
Visibilities = Annotated[
    list[str] | None,
    Query(
        description="Open to the reader; repeated or by commas",
        json_schema_extra={
            "items": {"type": "string", "pattern": f"^{_ANY_VISIBILITY}(?:,{_ANY_VISIBILITY})*$"}
        },
    ),
]
