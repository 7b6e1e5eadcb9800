"""The browser's side of a session: one cookie, and posted forms.

1. The cookie is HttpOnly and SameSite=Strict, and Secure where people come by HTTPS.
2. A form carries the session's own token (`charon.sign_in.WebSession`), which another site can neither read nor guess.
3. A sign-in link is used by a POST, so that a prefetching mail reader or chat does not burn it.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from memory_git.domain.errors import Invalid, TooLarge

COOKIE = "memory_git_session"
FORM_BYTES = 64 << 10


def cookie_of(request: Request) -> str:
    """Gives the session cookie, or an empty text."""
    return request.cookies.get(COOKIE, "")


def set_cookie(request: Request, response: Response, cookie: str) -> None:
    """Puts the session cookie on an answer (rule 1)."""
    secure = request.app.state.secure_cookie or request.url.scheme == "https"
    response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=secure, path="/")


def drop_cookie(response: Response) -> None:
    """Takes the session cookie away."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", path="/")


async def read_form(request: Request) -> dict[str, str]:
    """Gives the fields of a posted form; of a repeated field the last."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise Invalid("bad_media_type", "a page takes forms only")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES:
            raise TooLarge(
                "request_too_large", f"the form is larger than {FORM_BYTES} bytes", max_bytes=FORM_BYTES
            )
    try:
        return dict(
            parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
        )
    except ValueError:
        raise Invalid("bad_form", "the form is not UTF-8, or has too many fields") from None
