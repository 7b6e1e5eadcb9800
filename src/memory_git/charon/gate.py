"""The gate, as the faces open and call it; each module behind its verbs has the rules (6-charon).

Every verb asks who calls, whether they may, writes it into the ledger, and speaks to the store for the caller's audience.
`project` None is the token's project, or the only one granted; `ref` None is the caller's working branch, and for reads
accepted memory where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from memory_git.charon import audits, backup, oauth_tokens, obols, principals, projects, reconcile
from memory_git.charon.caller import LOCAL_OPERATOR, Caller
from memory_git.charon.house import House
from memory_git.charon.opening import GateSettings, close_house, open_house, utc_now
from memory_git.charon.recovery import read_marker
from memory_git.charon.sign_in import WebSession
from memory_git.charon.standings import Identity
from memory_git.charon.verbs_administration import AdministrationVerbs
from memory_git.charon.verbs_memory import MemoryVerbs
from memory_git.charon.verbs_oauth import OAuthVerbs
from memory_git.charon.verbs_proposals import ProposalVerbs
from memory_git.lethe.feed import Feed, FeedEvent
from memory_git.lethe.protocol import Json

__all__ = ["Caller", "Gate", "GateSettings", "WebSession"]


class Gate(MemoryVerbs, ProposalVerbs, AdministrationVerbs, OAuthVerbs):
    """One gate over one data directory; any number of threads may call it."""

    def __init__(self, house: House, settings: GateSettings) -> None:
        self._house = house
        self._settings = settings

    @classmethod
    def open(cls, settings: GateSettings | Path, now: Callable[[], datetime] = utc_now) -> Gate:
        """Opens or creates what the settings name; a path alone is a data directory with everything in it.

        Damaged, newer or insufficiently durable storage is refused.
        """
        if isinstance(settings, Path):
            settings = GateSettings(settings)
        return cls(open_house(settings, now), settings)

    def close(self) -> None:
        """Writes what waits, and closes; a call under way may be refused."""
        close_house(self._house)

    @property
    def feed(self) -> Feed:
        """What moves and what is proposed, live."""
        return self._house.feed

    # who calls

    def authenticate(self, bearer: str, surface: str) -> Caller:
        """Gives the caller of an obol, or of an OAuth client's access token; raises Unauthenticated."""
        return self.recognise(bearer, surface)[0]

    def recognise(self, bearer: str, surface: str) -> tuple[Caller, Identity]:
        """Gives the caller of a token with what holds for it now, for a call that begins at once; raises Unauthenticated."""
        if isinstance(bearer, str) and oauth_tokens.is_access_token(bearer):
            return oauth_tokens.recognise(self._house, bearer, surface)
        return obols.recognise(self._house, bearer, surface)

    def as_principal(self, principal_id: str, surface: str = "cli") -> Caller:
        """Gives a principal as the owner of the data directory may act in its name: its grants, and administration."""
        principals.require_principal(self._house, principal_id)
        identity = self._house.standings.of(principal_id, None)
        return obols.caller_of(identity, surface, local_operator=True)

    def as_operator(self, surface: str = "cli") -> Caller:
        """Gives the owner of the data directory in nobody's name: administration alone."""
        return obols.caller_of(self._house.standings.of(LOCAL_OPERATOR, None), surface, local_operator=True)

    def whoami(self, caller: Caller) -> Json:
        """Tells a caller who it is and what it may do."""
        return principals.whoami(self._house, caller)

    # audit and operations

    def ledger_tail(self, caller: Caller, project: str | None = None, limit: int = 50) -> list[Json]:
        """Gives a chain's last rows; without a project, of the calls that name none."""
        return audits.ledger_tail(self._house, caller, project, limit)

    def ledger_verify(self, caller: Caller, project: str | None = None) -> Json:
        """Recomputes a chain, or all: `{ok, checked, faults}`."""
        return audits.ledger_verify(self._house, caller, project)

    def ledger_export(self, caller: Caller, project: str | None = None) -> Iterator[Json]:
        """Gives all rows of a chain, or of all chains."""
        return audits.ledger_export(self._house, caller, project)

    def reconcile(self, caller: Caller, repair: bool = False, without_journal: bool = False) -> Json:
        """Compares gate and store: `{ok, faults, repaired, checked, recovery_lifted}`; only a clean report ends recovery.

        `without_journal` goes on where the journal beside the anchor is lost for good: every token ends.
        """
        marker = read_marker(self._settings.marker)
        report = reconcile.reconcile(
            self._house,
            caller,
            repair=repair,
            without_journal=without_journal,
            manifest=marker.manifest if marker is not None else None,
        )
        lifted = report["ok"] and self._settings.marker.exists()
        if lifted:
            self._settings.marker.unlink()
        return {**report, "recovery_lifted": lifted}

    def backup(self, caller: Caller, out: Path, with_keys: bool = False) -> Json:
        """Writes both databases and a manifest into a new folder, while serving."""
        return backup.backup(
            self._house, caller, out, self._settings.data_dir / "keys" if with_keys else None
        )

    def recovery_why(self) -> str:
        """Says what keeps the gate read-only besides recovery itself; empty for nothing."""
        return self._house.recovery_why

    def ready(self) -> Json:
        """Says that both databases can be used, or raises Unavailable."""
        return projects.ready(self._house)

    def figures(self, caller: Caller) -> dict[str, float]:
        """Gives the gate's counters, and an embedded store's, to an administrator."""
        return projects.figures(self._house, caller)

    def may_see(self, caller: Caller, event: FeedEvent) -> bool:
        """Decides whether a caller may learn of an event of the feed."""
        return projects.may_see(self._house, caller, event)
