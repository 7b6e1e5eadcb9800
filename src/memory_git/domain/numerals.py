"""Numbers and dates of a text by their value, as far as every reader agrees on it (4-history, conflicts).

1. Grouping is taken out where it can be nothing else: apostrophes, one sign twice or more, or two signs of which the last is the
   decimal one. One "," or "." before three figures groups only if the text's own language says so: 1,200 and 1.200 are a
   thousand times each other in half of the world.
2. Zeros at the end stay: version 1.10 is not version 1.1.
3. Chinese numerals are numbers; days, months and weekdays have one name in all languages. A date of figures alone stays as it is
   written: nobody knows which of 03/04 is the month.
"""

from __future__ import annotations

import re

_GROUPED = re.compile(r"\d{1,3}(?:(?:['\u2019]\d{3})+|(?P<sign>[.,])\d{3}(?:(?P=sign)\d{3})+)")
_GROUPED_WITH_DECIMALS = re.compile(
    r"(?P<whole>\d{1,3}(?:(?P<sign>[.,'\u2019])\d{3})(?:(?P=sign)\d{3})*)(?!(?P=sign))[.,](?P<part>\d+)"
)
_GROUPED_ONCE = re.compile(r"-?[1-9]\d{0,2}[.,]\d{3}")
_HAN_VALUES = {sign: value for value, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10000}


def number_value(text: str) -> str:
    """Gives a number in figures without its grouping.

    >>> [number_value(text) for text in ("1'200", "1,200,000", "1.234,5", "1,200", "1.10")]
    ['1200', '1200000', '1234.5', '1,200', '1.10']
    """
    text = text.replace("\u2212", "-")
    if _GROUPED.fullmatch(text):
        return re.sub(r"\D", "", text)
    both = _GROUPED_WITH_DECIMALS.fullmatch(text)
    if both is not None:
        return re.sub(r"\D", "", both["whole"]) + "." + both["part"]
    return text


def ungrouped(value: str, sign: str) -> str:
    """Gives a number's value without its one grouping sign, in a text that groups by that sign; none groups by nothing.

    >>> [ungrouped("1,200", sign) for sign in (",", ".", "")]
    ['1200', '1,200', '1,200']
    """
    return value.replace(sign, "") if sign and _GROUPED_ONCE.fullmatch(value) else value


def numeral_value(text: str) -> str:
    """Gives a number in Chinese numerals in figures.

    >>> [numeral_value(text) for text in ("三十二", "二〇二六", "一万五千")]
    ['32', '2026', '15000']
    """
    if not any(sign in _HAN_UNITS for sign in text):
        return "".join(str(_HAN_VALUES[sign]) for sign in text)
    total, section, digit = 0, 0, 0
    for sign in text:
        if sign in _HAN_VALUES:
            digit = _HAN_VALUES[sign]
        elif sign == "万":
            total, section, digit = total + (section + digit or 1) * 10000, 0, 0
        else:
            section, digit = section + (digit or 1) * _HAN_UNITS[sign], 0
    return str(total + section + digit)


def date_value(kind: str, text: str) -> str:
    """Gives a date's name: `weekday:1` to `weekday:7`, `month:`, `day:`, `year:`, `isodate:` or `clock:` and its figures."""
    if kind == "weekday":
        sign = text[0] if "曜" in text else text[-1]
        order = "月火水木金土日" if "曜" in text else "一二三四五六日"
        return f"weekday:{order.index(sign.replace('天', '日')) + 1}"
    if kind in {"month", "monthday"}:
        value = text[:-1] if text[0].isdigit() else numeral_value(text[:-1])
        return f"{'month' if kind == 'month' else 'day'}:{value}"
    return f"{kind}:{text}"
