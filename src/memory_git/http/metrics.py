"""What a face counts, in a Prometheus registry of its own (10-operations; names of the original where it has them).

No label holds a project, a principal or a name: a count may not tell what its reader may not see.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

disable_created_metrics()  # type: ignore[no-untyped-call]
_LOG = logging.getLogger("memory_git.http.access")
TEXTS = {
    "lethe_changesets_created_total": "Changesets stored, replays not counted",
    "lethe_changesets_rejected_total": "Create requests that were refused, whatever for",
    "lethe_idempotent_replays_total": "Create requests answered with the changeset of an earlier equal one",
    "lethe_idempotency_mismatches_total": "Idempotency keys sent again with another request",
    "lethe_ref_cas_conflicts_total": "Ref moves that lost to another",
    "lethe_merge_authorized_total": "Protected refs moved on an authorization",
    "lethe_merge_authorization_failures_total": "Merge authorizations that do not hold",
    "lethe_merge_replay_rejections_total": "Merge authorizations that were presented again",
    "lethe_merges_blocked_by_conflicts_total": "Merges refused for open conflicts",
    "lethe_conflicts_persisted_total": "Conflicts stored",
    "lethe_conflicts_resolved_total": "Conflicts resolved",
    "lethe_conflicts_retired_total": "Conflicts that ended with their proposal",
    "lethe_context_reconstructions_total": "Contexts made",
    "lethe_context_reconstruction_ms_total": "Milliseconds that making them took",
    "lethe_sqlite_busy_exhausted_total": "Writes that another process kept waiting for too long",
    "charon_authz_denials_total": "Calls that the gate did not allow",
    "charon_audit_outbox_backlog": "Ledger rows that wait to be written",
    "charon_proposals_created_total": "Proposals made",
    "charon_merge_attempts_total": "Merges begun",
    "charon_merge_cas_conflicts_total": "Merges that lost to another move of their target",
    "charon_idempotent_replays_total": "Calls answered with what an earlier equal one did",
    "charon_idempotency_mismatches_total": "Idempotency keys sent again with another call",
    "charon_ledger_append_failures_total": "Mutations not begun because the ledger could not be written",
    "charon_audit_append_failures_total": "Times that the batched rows of the ledger could not be written",
}
_UNFIT = {"invalid_request", "bad_json", "bad_media_type"}


class FaceMetrics:
    """The answers of one face, `lethe` or `charon`; what store and gate count across all faces comes as figures."""

    def __init__(self, face: str) -> None:
        self.registry = CollectorRegistry()
        self._answers = Counter(
            f"{face}_http_answers", "Answers by status class", ["status"], registry=self.registry
        )
        self._by_class = {number: self._answers.labels(f"{number}xx") for number in range(1, 6)}
        self._unfit = Counter(
            f"{face}_strict_parsing_rejections",
            "Requests refused for their form, before they were looked into",
            registry=self.registry,
        )

    def answered(self, status: int, code: str | None = None) -> None:
        """Counts an answer by its status class, and those to requests that do not fit their form."""
        self._by_class.get(status // 100, self._by_class[5]).inc()
        if code in _UNFIT:
            self._unfit.inc()

    def exposition(self, figures: Mapping[str, float]) -> Response:
        """Gives the text form, with the figures of store and gate; those named `_total` only ever grow."""
        told = CollectorRegistry()
        told.register(_Figures(figures))
        text = generate_latest(self.registry) + generate_latest(told)
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


class _Figures(Collector):
    """Figures of one moment, as metrics."""

    def __init__(self, figures: Mapping[str, float]) -> None:
        self.figures = figures

    def collect(self) -> Iterator[Metric]:
        for name, value in self.figures.items():
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield family(name, TEXTS[name], value=value)


class Observed:
    """Counts every answer and logs it: method, the route's pattern, status, code, duration, request id; no path, no query."""

    def __init__(self, app: ASGIApp, metrics: FaceMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        status = 0
        began_s = time.perf_counter()

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self.app(scope, receive, seen)
        if scope["type"] == "http":
            self._record(scope, status, time.perf_counter() - began_s)

    def _record(self, scope: Scope, status: int, duration_s: float) -> None:
        self.metrics.answered(status, scope.get("problem_code"))
        facts = {
            "method": scope["method"],
            "route": getattr(scope.get("route"), "path", None),
            "status": status,
            "code": scope.get("problem_code"),
            "duration_ms": round(duration_s * 1000, 2),
            "request_id": scope.get("request_id"),
        }
        _LOG.info("answered", extra=facts)
