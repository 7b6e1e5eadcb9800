import pytest

from memory_git.domain.words import words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("  --- !? ", []),
        ("The hold lasts 600 s", ["the", "hold", "lasts", "600", "s"]),
        ("booking.hold_ttl_s", ["booking", "hold", "ttl", "s"]),
        ("Die Straße, STRASSE", ["die", "strasse", "strasse"]),
        ("Übergröße", ["übergrösse"]),
        ("l'équipe don’t", ["l", "équipe", "don", "t"]),
        ("U\u0308ber e\u0301te\u0301", ["über", "été"]),
        ("\uff26\uff35\uff2c\uff2c \ufb01ne \u2460", ["full", "fine", "1"]),
        ("Dampf\u00adschiff", ["dampfschiff"]),
        ("東京都", ["東京", "京都"]),
        ("税", ["税"]),
        ("座位保留时间", ["座位", "位保", "保留", "留时", "时间"]),
        (
            "開場は開演の四十五分前",
            ["開場", "場は", "は開", "開演", "演の", "の四", "四十", "十五", "五分", "分前"],
        ),
        ("ﾁｹｯﾄ チケット", ["チケ", "ケッ", "ット", "チケ", "ケッ", "ット"]),
        ("サーバー", ["サー", "ーバ", "バー"]),
        ("인공 지능", ["인공", "지능"]),
        ("日本・東京", ["日本", "東京"]),
        ("第24回GPU会議", ["第", "24", "回", "gpu", "会議"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Привет МИР", ["привет", "мир"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("مرحبا ٣", ["مرحبا", "٣"]),
        ("ตั๋ว", ["ตั", "ั๋", "๋ว"]),
        ("İstanbul", ["i̇stanbul"]),
        ("a\u200bb", ["a", "b"]),
        ("😀👍🏽", []),
    ],
)
def test_the_words_of_a_text(text: str, found: list[str]) -> None:
    assert words(text) == found
