"""The verbs of OAuth, as the faces call them (6-charon, tokens). `base` is the address by which a client knows this gate."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from memory_git.charon import oauth_clients, oauth_consent, oauth_tokens
from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.oauth_consent import Asked
from memory_git.lethe.protocol import Json


class OAuthVerbs:
    """How remote clients are let in by people."""

    _house: House

    def oauth_scopes(self) -> list[str]:
        """Gives the scopes that a client may have at all."""
        return sorted(oauth_consent.offered_scopes(self._house))

    def oauth_register(self, metadata: Mapping[str, object]) -> Json:
        """Registers a client (RFC 7591)."""
        return oauth_clients.register(self._house, metadata)

    def oauth_begin(self, params: Mapping[str, str], base: str) -> Asked:
        """Takes an authorization request."""
        return oauth_consent.begin(self._house, params, base)

    def oauth_asked(self, caller: Caller, request: str) -> Json:
        """Gives what a person is asked to decide."""
        return oauth_consent.asked(self._house, caller, request)

    def oauth_returns_to(self, request: str) -> str:
        """Gives the origin that a decision sends the browser to."""
        return oauth_consent.returns_to(self._house, request)

    def oauth_decide(
        self, caller: Caller, request: str, base: str, project: str, scopes: Collection[str], agent: str
    ) -> str:
        """Lets a client in; gives the address that the browser is sent to."""
        return oauth_consent.decide(
            self._house, caller, request, base, project=project, scopes=frozenset(scopes), agent=agent
        )

    def oauth_refuse(self, caller: Caller, request: str, base: str) -> str:
        """Turns a client away; gives the address that the browser is sent to."""
        return oauth_consent.refuse(self._house, caller, request, base)

    def oauth_token(self, params: Mapping[str, str], base: str) -> Json:
        """Answers a token request."""
        return oauth_tokens.exchange(self._house, params, base)

    def oauth_revoke(self, params: Mapping[str, str]) -> None:
        """Ends a token (RFC 7009)."""
        oauth_tokens.revoke(self._house, params)

    def oauth_connections(self, caller: Caller) -> list[Json]:
        """Gives what the caller let clients do."""
        return oauth_consent.connections(self._house, caller)

    def oauth_disconnect(self, caller: Caller, grant_id: str) -> Json:
        """Ends what the caller let a client do."""
        return oauth_consent.disconnect(self._house, caller, grant_id)

    def oauth_clients(self, caller: Caller) -> list[Json]:
        """Gives all clients, to an administrator."""
        return oauth_clients.clients(self._house, caller)

    def oauth_disable_client(self, caller: Caller, client_id: str) -> Json:
        """Turns a client off for good."""
        return oauth_clients.disable_client(self._house, caller, client_id)
