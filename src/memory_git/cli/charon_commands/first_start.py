"""What the first start of a gate makes, and the way in that every start shows.

1. A project, a person (operator and reviewer) and an agent, each granted the project, and one token for the agent.
2. A start that broke off is finished by the next one; where anybody was added otherwise, nothing is made.
3. The token is shown once, by the start that minted it. A sign-in link lives ten minutes and works once.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_git.charon.gate import Gate
    from memory_git.cli.settings import Settings

FIRST_PROJECT = "default"
OWNER = "owner"
AGENT = "agent"
TOKEN_LIFETIME_S = 90 * 24 * 3600
_SECRETS = ("lethe.api_key", "charon.merge_hmac_keys", "charon.merge_hmac_key", "charon.hmac_key")
NO_TOKEN = "obol_..."  # noqa: S105 (stands where a token goes)
_FIRST = {OWNER: ("human", "Owner", "write"), AGENT: ("agent", "Agent", "propose")}


def first_start(gate: Gate, project: str | None) -> str | None:
    """Makes what the first start makes (rules 1 and 2); gives the agent's token, or None where there was one already.

    The project is the one named, else the first there is, else `default`.
    """
    operator = gate.as_operator()
    known = {item["principal_id"] for item in gate.principals(operator)}
    if not known <= _FIRST.keys() or gate.obols(operator):
        return None
    granted = [item["project"] for item in gate.grants(operator)]
    project = project or next(iter([*granted, *gate.list_projects(operator)]), FIRST_PROJECT)
    gate.init_project(operator, project)
    for name, (kind, shown, profile) in _FIRST.items():
        if name not in known:
            gate.add_principal(operator, name, kind, shown, profile)
        gate.grant(operator, name, project)
    return str(gate.mint_obol(operator, AGENT, TOKEN_LIFETIME_S, project=project)["token"])


def sign_in_url(gate: Gate, address: str, person: str | None) -> str | None:
    """Gives a fresh one-time link for a person, or None where there is nobody."""
    if person is None:
        return None
    code = gate.mint_sign_in(gate.as_operator(), person)["code"]
    return f"{address}/sign-in?code={code}"


def mcp_configuration(
    settings: Settings, config: Path | None, address: str, token: str | None
) -> dict[str, Any]:
    """Gives what goes into an `mcpServers` file: `stdio` on the same data, `http` at the address."""
    stdio = {
        "command": this_program(),
        "args": ["mcp"],
        "env": _environment(settings, config, address, token),
    }
    headers = {"Authorization": f"Bearer {token or NO_TOKEN}"}
    http = {"type": "http", "url": f"{address}/mcp", "headers": headers}
    return {"stdio": {"mcpServers": {"memory-git": stdio}}, "http": {"mcpServers": {"memory-git": http}}}


def _environment(settings: Settings, config: Path | None, address: str, token: str | None) -> dict[str, str]:
    """Gives the settings of an agent's own process: the same data, or this server where that takes a secret it can't find."""
    charon, found = settings.charon, {"CHARON_TOKEN": token or NO_TOKEN}
    if any(settings.origin(name).startswith("environment") for name in _SECRETS):
        return {**found, "CHARON_URL": address}
    found["CHARON_DATA_DIR"] = str(charon.data_dir.absolute())
    if settings.origin("lethe.data_dir") != "default":
        found["LETHE_DATA_DIR"] = str(settings.lethe.data_dir.absolute())
    if charon.upstream:
        found["CHARON_UPSTREAM"] = charon.upstream
    if charon.ledger_anchor_path:
        found["CHARON_LEDGER_ANCHOR_PATH"] = str(charon.ledger_anchor_path.absolute())
    if config is not None:
        found["MEMORY_GIT_CONFIG"] = str(config.absolute())
    return found


def this_program() -> str:
    """Gives the path of the `charon` that belongs to this Python."""
    beside = Path(sys.executable).with_name("charon")
    return str(beside) if beside.exists() else "charon"


def how_to_mint(settings: Settings) -> str:
    """Gives the command that makes another token for the agent, as it can be pasted."""
    words = [this_program(), "obol", "mint", AGENT]
    if settings.origin("charon.data_dir").startswith("flag"):
        words += ["--data-dir", str(settings.charon.data_dir.absolute())]
    return shlex.join(words)
