"""The one boundary that every call passes (6-charon; 12-lessons, permissions).

0. A call whose words are no text (a lone surrogate, a NUL) is refused before it is one.
1. The caller's standing is asked anew: a revoked token or grant counts at once.
2. The project is the one named, the token's, or the only one granted.
3. Each scope is decided by the policy. A denial is in the ledger with its reason; outward it is NotFound to who may not know
   of the project, else NotAllowed `denied`, saying what is missing.
4. Rates count every call, quotas every mutation (`limits`). A mutation is refused in recovery, and begins only when its intent is durable in the ledger.
5. What is shown is read for the caller's audience, which the passage carries.
6. Who administers a project holds admin on it. What concerns the gate as a whole (principals, tokens, wildcard grants, a
   project that isn't there yet) takes admin on every project: else an administrator of one could make themselves one of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NoReturn, TypeVar

from memory_git.charon.caller import Caller
from memory_git.charon.figures import UNWRITTEN, GateFigures
from memory_git.charon.journal import Journal
from memory_git.charon.keys import Keys
from memory_git.charon.ledger import Call, Ledger
from memory_git.charon.limits import Limits
from memory_git.charon.oauth_documents import Documents
from memory_git.charon.standings import Identity, Standings
from memory_git.charon.steps import Step, Steps, now_told
from memory_git.charon.turnstile import Turnstile
from memory_git.charon.wording import require_text
from memory_git.domain.errors import Invalid, NotAllowed, NotFound, Refused, Unavailable
from memory_git.domain.ids import check_project_id
from memory_git.domain.policy import Audience, Denied, Standing, audience, knows_project, may
from memory_git.domain.times import format_time
from memory_git.lethe.feed import Feed
from memory_git.lethe.protocol import Json, Lethe
from memory_git.storage.engine import Database

T = TypeVar("T")
NOT_FOUND = "not found, or not for you to know of"


@dataclass(slots=True)
class Passage:
    """One call that was let through. `ids` is what its ledger row names; `settled` when the outcome is written already,
    `replayed` when an earlier equal call had done it."""

    caller: Caller
    identity: Identity
    call: Call
    project_id: str
    audience: Audience
    intent_seq: int = 0
    settled: bool = False
    replayed: bool = False
    ids: dict[str, Any] = field(default_factory=dict)

    @property
    def standing(self) -> Standing:
        """What the caller may do."""
        return self.identity.standing

    @property
    def principal_id(self) -> str:
        """Who calls."""
        return self.identity.principal.principal_id

    def may(self, scope: str) -> bool:
        """Decides whether the caller has one more scope in the project."""
        return not isinstance(may(self.standing, scope, self.project_id), Denied)


@dataclass(slots=True)
class House:
    """What the verbs of the gate share: the database, the store, the ledger, the keys and the clock."""

    database: Database
    lethe: Lethe
    ledger: Ledger
    keys: Keys
    standings: Standings
    feed: Feed
    now: Callable[[], datetime]
    recovery_readonly: bool
    journal: Journal
    limits: Limits
    oauth_author_scopes: bool = True
    documents: Documents = field(default_factory=Documents)
    recovery_fault: str = ""
    recovery_why: str = ""
    turnstile: Turnstile = field(default_factory=Turnstile)
    figures: GateFigures = field(default_factory=GateFigures)
    projects: frozenset[str] = frozenset()

    def time(self) -> str:
        """Gives the present time in the wire form."""
        return format_time(self.now())

    @contextmanager
    def reads(
        self, caller: Caller, route: str, project: str | None, *scopes: str, **request: Any
    ) -> Iterator[Passage]:
        """Lets a read through, and notes it."""
        passage = self._let_in(caller, route, project, scopes, request)
        with self._noted(passage):
            yield passage

    @contextmanager
    def changes(
        self, caller: Caller, route: str, project: str | None, *scopes: str, **request: Any
    ) -> Iterator[Passage]:
        """Lets a mutation through once its intent is durable, and notes its outcome."""
        passage = self._let_in(caller, route, project, scopes, request)
        with self._intended(passage):
            yield passage

    @contextmanager
    def administers(
        self, caller: Caller, route: str, project: str | None = None, *, reads: bool = False, **request: Any
    ) -> Iterator[Passage]:
        """Lets an administrator of the project through, or the owner of the data directory (rule 6)."""
        passage = self._admitted(caller, route, project, request)
        if not caller.local_operator:
            reason = self._not_administering(passage.standing, project)
            if reason:
                self.deny(passage.call, reason, known=True)
        with self._noted(passage) if reads else self._intended(passage):
            yield passage

    def reader(self, caller: Caller, identity: Identity, project_id: str) -> Passage:
        """Gives a passage for a decision about what may be shown, where the policy was asked already and no row is due."""
        call = Call("", caller.principal_id, caller.obol_id, caller.surface, "live", project_id, "")
        return Passage(caller, identity, call, project_id, audience(identity.standing, project_id))

    def deny(self, call: Call, reason: str, *, known: bool) -> NoReturn:
        """Notes a denial and raises it: NotAllowed where the caller may know of the project, else NotFound."""
        self.ledger.deny(call, reason)
        raise NotAllowed("denied", f"denied: {reason}") if known else NotFound("not_found", NOT_FOUND)

    def forbid(self, reason: str) -> NoReturn:
        """Raises a denial inside a call that was let in; the outcome row tells it."""
        raise NotAllowed("denied", f"denied: {reason}")

    def identify(self, caller: Caller) -> Identity:
        """Gives the caller's identity as it holds now."""
        return self.standings.of(caller.principal_id, caller.obol_id)

    def call(self, caller: Caller, route: str, project: str | None, request: dict[str, Any]) -> Call:
        """Gives the ledger's name for a call; one about a project that isn't there stands in the chain of no project."""
        require_text({"project": project, **request})
        digest = self.ledger.request_digest({"project": project, **request})
        named = _ledger_name(project)
        chain = named if named is not None and self._exists(named) else ""
        return Call(chain, caller.principal_id, caller.obol_id, caller.surface, route, named, digest)

    def _let_in(
        self,
        caller: Caller,
        route: str,
        project: str | None,
        scopes: tuple[str, ...],
        request: dict[str, Any],
        identity: Identity | None = None,
    ) -> Passage:
        identity = identity or self.identify(caller)
        project_id = _named(caller, identity, project)
        call = self.call(caller, route, project_id, request)
        self.limits.call(caller, project_id)
        for scope in scopes:
            verdict = may(identity.standing, scope, project_id)
            if isinstance(verdict, Denied):
                self.deny(call, verdict.reason, known=knows_project(identity.standing, project_id))
        return Passage(caller, identity, call, project_id, audience(identity.standing, project_id))

    def _admitted(self, caller: Caller, route: str, project: str | None, request: dict[str, Any]) -> Passage:
        identity = self.identify(caller)
        call = self.call(caller, route, project, request)
        self.limits.call(caller, project or "")
        return Passage(caller, identity, call, project or "", audience(identity.standing, project or ""))

    @contextmanager
    def _noted(self, passage: Passage) -> Iterator[None]:
        try:
            yield
        except Refused as refusal:
            self.ledger.read(passage.call, f"refused: {refusal.code}", passage.ids)
            raise
        self.ledger.read(passage.call, "shown", passage.ids)

    @contextmanager
    def _intended(self, passage: Passage) -> Iterator[None]:
        self._require_changeable(passage)
        with self.turnstile.passing():
            with self._unwritten_counted():
                passage.intent_seq = self.ledger.intend(passage.call, passage.ids, lambda _, seq: seq)
            with self._settled(passage):
                yield

    def changing(self, passage: Passage, work: Callable[[Passage], Steps[T]]) -> Steps[T]:
        """Gives the steps of a mutation that was admitted: its intent durable, then its own, then its outcome noted."""
        if not self.turnstile.enter_if_open():
            yield self.turnstile.entering()
        try:
            with self._unwritten_counted():
                passage.intent_seq = yield self.ledger.intending(passage.call, passage.ids)
            with self._settled(passage):
                return (yield from work(passage))
        finally:
            self.turnstile.leave()

    def creating(self, request: Mapping[str, Any]) -> Step[tuple[Json, bool, Json | None]]:
        """Gives the step of storing a changeset, with the ref as it moved it where the store says so; one elsewhere is waited for."""

        def now() -> tuple[Json, bool, Json | None]:
            return *self.lethe.create_changeset(request), None

        soon = getattr(self.lethe, "commit_soon", None)
        return Step(now, partial(soon, request) if soon is not None else now_told(now))

    def admits(
        self,
        caller: Caller,
        identity: Identity | None,
        route: str,
        project: str | None,
        *scopes: str,
        **request: Any,
    ) -> Passage:
        """Lets a mutation in that goes on by `changing`; `identity` is what the caller's token was recognised as in this call."""
        passage = self._let_in(caller, route, project, scopes, request, identity)
        self._require_changeable(passage)
        return passage

    def _require_changeable(self, passage: Passage) -> None:
        if self.recovery_readonly:
            raise Unavailable(
                "recovery_readonly", self.recovery_why or "writes are refused until recovery is over"
            )
        self.limits.change(passage.caller, passage.project_id)

    @contextmanager
    def _settled(self, passage: Passage) -> Iterator[None]:
        try:
            yield
        except Refused as refusal:
            self._settle(passage, f"refused: {refusal.code}", refusal)
            raise
        except BaseException:
            self._settle(passage, "failed", None)
            raise
        self._settle(passage, "done", None)

    @contextmanager
    def _unwritten_counted(self) -> Iterator[None]:
        try:
            yield
        except Refused:
            self.figures.count(UNWRITTEN)
            raise

    def _settle(self, passage: Passage, outcome: str, refusal: Refused | None) -> None:
        code = None if refusal is None else refusal.code
        self.figures.settled(passage.call.route, code, replayed=passage.replayed)
        if passage.settled:
            return
        reason = ""
        if refusal is not None and refusal.code == "denied":
            self.ledger.denials += 1
            reason = refusal.message.removeprefix("denied: ")
        self.ledger.settle(passage.call, passage.intent_seq, outcome, passage.ids, reason)

    def _not_administering(self, standing: Standing, project: str | None) -> str:
        """Says why somebody does not administer (rule 6); empty when they do. Tells nothing of which projects there are."""
        if "admin" not in standing.scopes:
            return "the token lacks the scope admin"
        concerned = [project] if project is not None and self._exists(project) else self.lethe.list_projects()
        if any(isinstance(may(standing, "admin", name), Denied) for name in concerned):
            return "no grant of admin on every project that this concerns"
        return ""

    def _exists(self, project: str) -> bool:
        if project not in self.projects:
            self.projects = frozenset(self.lethe.list_projects())
        return project in self.projects


def _ledger_name(project: str | None) -> str | None:
    """Gives what the ledger may call a project; what is no project's id is the caller's own text, which the digest covers."""
    try:
        return project if project == "*" else check_project_id(project)
    except Invalid:
        return None


def _named(caller: Caller, identity: Identity, project: str | None) -> str:
    if project is not None:
        return check_project_id(project)
    if caller.default_project is not None:
        return caller.default_project
    granted = [grant.project_id for grant in identity.standing.grants if not grant.is_wildcard]
    if len(granted) == 1:
        return granted[0]
    raise Invalid("project_needed", "name a project: none is the default, and not exactly one is granted")
