"""The verbs of administration: principals, tokens, grants, policies, sign-in, as the faces call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_git.charon import grants, obols, principals, secret_rotation, sign_in
from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.sign_in import WebSession
from memory_git.lethe.protocol import Json


class AdministrationVerbs:
    """Who may do what."""

    _house: House

    def add_principal(
        self,
        caller: Caller,
        principal_id: str,
        kind: str,
        display_name: str = "",
        profile: str = "propose",
        actor_ids: Sequence[str] | None = None,
        scopes: Sequence[str] = (),
    ) -> Json:
        """Adds a principal; without actors it owns one of its own name."""
        return principals.add_principal(
            self._house,
            caller,
            principal_id,
            kind,
            display_name=display_name,
            profile=profile,
            actor_ids=actor_ids,
            scopes=scopes,
        )

    def principals(self, caller: Caller) -> list[Json]:
        """Gives all principals."""
        return principals.principals(self._house, caller)

    def disable_principal(self, caller: Caller, principal_id: str, disabled: bool = True) -> Json:
        """Disables a principal at once, or enables it again."""
        return principals.disable_principal(self._house, caller, principal_id, disabled)

    def add_actor(self, caller: Caller, principal_id: str, actor_id: str) -> Json:
        """Gives an actor to a principal."""
        return principals.add_actor(self._house, caller, principal_id, actor_id)

    def mint_obol(
        self,
        caller: Caller,
        principal_id: str,
        expires_s: int | None = None,
        scopes: Sequence[str] | None = None,
        project: str | None = None,
    ) -> Json:
        """Makes a token, shown once as `token`."""
        return obols.mint_obol(self._house, caller, principal_id, expires_s, scopes, project)

    def obols(self, caller: Caller, principal_id: str | None = None) -> list[Json]:
        """Gives tokens, without their secrets."""
        return obols.obols(self._house, caller, principal_id)

    def revoke_obol(self, caller: Caller, obol_id: str) -> Json:
        """Revokes a token at once."""
        return obols.revoke_obol(self._house, caller, obol_id)

    def grant(
        self,
        caller: Caller,
        principal_id: str,
        project: str,
        scopes: Sequence[str] | None = None,
        refs: Sequence[str] = (),
    ) -> Json:
        """Grants scopes on a project; "*" grants reading of all."""
        return grants.grant(self._house, caller, principal_id, project, scopes=scopes, refs=refs)

    def revoke_grant(self, caller: Caller, principal_id: str, project: str) -> Json:
        """Takes a grant away at once."""
        return grants.revoke_grant(self._house, caller, principal_id, project)

    def grants(
        self, caller: Caller, principal_id: str | None = None, project: str | None = None
    ) -> list[Json]:
        """Gives grants."""
        return grants.grants(self._house, caller, principal_id, project)

    def project_policy(
        self, caller: Caller, project: str | None = None, changes: Mapping[str, Any] | None = None
    ) -> Json:
        """Gives a project's policy, after setting the fields of `changes`."""
        return grants.project_policy(self._house, caller, project, changes)

    def mint_sign_in(self, caller: Caller, principal_id: str) -> Json:
        """Makes a one-time sign-in code: `{code, principal_id, expires_at}`."""
        return sign_in.mint_sign_in(self._house, caller, principal_id)

    def use_sign_in(self, code: str) -> str:
        """Uses a code up and gives a session's cookie."""
        return sign_in.use_sign_in(self._house, code)

    def open_session(self, caller: Caller) -> str:
        """Gives a session's cookie to a caller that showed a token."""
        return sign_in.open_session(self._house, caller)

    def web_session(self, cookie: str) -> WebSession:
        """Gives the session of a cookie; raises Unauthenticated."""
        return sign_in.web_session(self._house, cookie)

    def session_caller(self, cookie: str) -> Caller:
        """Gives the caller of a cookie; raises Unauthenticated."""
        return sign_in.web_session(self._house, cookie).caller

    def end_session(self, cookie: str) -> None:
        """Ends a session."""
        sign_in.end_session(self._house, cookie)

    def secrets(self, caller: Caller) -> list[Json]:
        """Gives the gate's keys by name and id, never a secret."""
        return secret_rotation.secrets_of(self._house, caller)

    def rotate_secret(self, caller: Caller, name: str) -> Json:
        """Makes a new key that signs from now on; older ones verify still."""
        return secret_rotation.rotate_secret(self._house, caller, name)

    def retire_secret(self, caller: Caller, name: str, key_id: str, end_tokens: bool = False) -> Json:
        """Drops an older key."""
        return secret_rotation.retire_secret(self._house, caller, name, key_id, end_tokens=end_tokens)
