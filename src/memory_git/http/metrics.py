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
_TEXTS = {
    "lethe_changesets_created_total": "Changesets stored, replays not counted",
    "lethe_ref_cas_conflicts_total": "Ref moves that lost to another",
    "lethe_merge_replay_rejections_total": "Merge authorizations that were presented again",
    "lethe_idempotency_mismatches_total": "Idempotency keys sent again with another request",
    "lethe_merges_blocked_by_conflicts_total": "Merges refused for open conflicts",
    "charon_authz_denials_total": "Calls that the gate did not allow",
    "charon_audit_outbox_backlog": "Ledger rows that wait to be written",
}


class FaceMetrics:
    """The answers of one face, `lethe` or `charon`; what store and gate count across all faces comes as figures."""

    def __init__(self, face: str) -> None:
        self.registry = CollectorRegistry()
        self._answers = Counter(
            f"{face}_http_answers", "Answers by status class", ["status"], registry=self.registry
        )

    def answered(self, status: int) -> None:
        """Counts an answer by its status class."""
        self._answers.labels(f"{status // 100}xx").inc()

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
            yield family(name, _TEXTS[name], value=value)


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
        self.metrics.answered(status)
        facts = {
            "method": scope["method"],
            "route": getattr(scope.get("route"), "path", None),
            "status": status,
            "code": scope.get("problem_code"),
            "duration_ms": round(duration_s * 1000, 2),
            "request_id": scope.get("request_id"),
        }
        _LOG.info("answered", extra=facts)
