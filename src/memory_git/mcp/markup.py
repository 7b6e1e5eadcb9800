"""Markup of a tool call that a model's client swallowed into the value of an argument (12-lessons, clients).

A client that reads a call wrongly hands on the end of one argument and all that followed as one text. That is never what was
meant, so such a text is refused. A text that is about such markup sets it in code, as Markdown does, and passes.

>>> markup_at("Fridays.</content>\\n<parameter name='kind'>fact"), markup_at("it ends with `</parameter>`")
(8, None)
"""

from __future__ import annotations

import re

_SPACE = r"(?:[a-z_]{1,16}:)?"
_WHOLE = r"(?:function_calls?|tool_calls?|tool_use|tool_code)"
_TAG = (
    rf"(?:</{_SPACE}(?:parameter|invoke|{_WHOLE})>"
    rf"|<{_SPACE}(?:parameter|invoke)\s+name\s*=|<{_SPACE}parameter=[\w.-]{{1,64}}>|<{_SPACE}{_WHOLE}>)"
)
_AFTER = rf"</[a-z_]{{1,32}}>(?=\s*(?:{_TAG}))"
"""The closing tag of an argument that is named after it, before more markup."""
_TOKENS = (
    r"<\|(?:tool|python_tag|call|recipient|function)[^<>]{0,60}\|?>",
    r"<[|｜]tool[_▁][^<>]{0,60}[|｜]>",
    r"<function=[\w.-]{1,64}>",
    r"\[/?TOOL_(?:CALLS|RESULTS)\]",
)
_MARKUP = re.compile("|".join((_AFTER, _TAG, *_TOKENS)), re.IGNORECASE)
_QUICK = re.compile(
    r"</?(?:[a-z_]{1,16}:)?(?:parameter|invoke|function|tool)|<[|｜]|\[/?TOOL_", re.IGNORECASE
)
_CODE = re.compile(r"(?P<fence>`{3,8}|~{3,8}).*?(?P=fence)|(?P<tick>`{1,2})[^`]{1,400}(?P=tick)", re.DOTALL)


def markup_at(text: str) -> int | None:
    """Gives where markup of a tool call begins in a text, outside of Markdown's code; None if there is none."""
    if not _QUICK.search(text):
        return None
    found = _MARKUP.search(_CODE.sub(lambda code: " " * len(code[0]), text))
    return found.start() if found else None
