"""The words that `reading` knows, by what they do in a sentence (English, German, French, Russian, Chinese, Japanese).

Negations of further languages stand here too. A word of a language that isn't here is content: two texts that differ
in it are never duplicates. Words are folded as `reading` folds them: lower case, without apostrophes, `е` for `ё`.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _numbered(*rows: tuple[int, str]) -> dict[str, str]:
    return {word: str(value) for value, words in rows for word in words.split()}


STOP = _words(
    "a an the is are be been being am do does of in on at and that we our its their also now currently please simply "
    "der die das dem den des ein eine einen einem einer eines ist sind wird werden im am und auch jetzt aktuell derzeit "
    "bitte dass wir "
    "le la les l un une de d du des est sont etre être et aussi actuellement maintenant desormais désormais que nous "
    "à a au aux notre nos unser unsere unseren unserem unserer наш наша наше наши нашей нашем "
    "и в во на у же то мы сейчас теперь также"
)
GERMAN = _words(
    "der die das und ist wird werden ein eine einen einem einer eines im den dem des wir dass sind jetzt aktuell derzeit"
)
ENGLISH = _words("the an is are be been being do does of and our its their also now currently that")
# Without an article after it, a noun that follows one of these is often what was chosen: "mit Angular", "in Go".
BEFORE_CHOSEN = _words("mit in über von per nach auf unter wir verwend nutz nutzt setz nehm nimmt wähl heißt")
ARTICLES_WITH_CASE = _words("der dem den des")
PURPOSES = _words("for für pour для")

NEGATIONS = _words(
    "not no never none nobody nothing nowhere neither nor without cannot unless except "
    "forbidden prohibited banned disallowed "
    "nicht kein keine keinen keinem keiner keines nie niemals ohne niemand nichts nirgends weder verboten untersagt "
    "unzulässig ne sans ni interdit interdite interdits interdites non "
    "не нет нельзя без кроме запрещено запрещен запрещена запрещены "
    "nunca sin ningun ningún ninguna senza não nao sem niet geen nooit zonder bez nigdy inte aldrig utan ikke uden "
    "değil yok không chưa tidak bukan tanpa belum لا ليس لم لن بدون नहीं मत 안 못"
)
# With one of NEGATIONS in the same text these only repeat it: "ne … pas", "никогда не".
ECHOES = _words("pas jamais aucun aucune rien guere guère никогда никто ничего нигде ни никакой никаких")
NEGATIVE_PREFIXES = ("un", "in", "im", "non", "dis", "не", "без", "nicht")

EVERY = _words("every each jede jeder jeden jedes jedem chaque каждый каждую каждое каждая каждые всякий")
TIMES_OF_LIFE = _words(
    "day days daily night nightly morning mornings week weeks weekly month months monthly year years yearly "
    "tag tage tagen nacht nächte morgen woche wochen monat monate monaten jahr jahre täglich nachts jährlich monatlich "
    "jour jours nuit nuits matin semaine semaines mois an ans année années "
    "afternoon afternoons evening evenings noon midday vormittag vormittags nachmittag nachmittags abend abends mittag mittags "
    "soir soirs midi днем вечер вечером вечера полдень час часа часов hour hours minute minutes stunde stunden heure heures "
    "день дня дней ночь ночью утро утром неделя неделю недели месяц месяца месяцев год года лет "
    "每 毎 週 周 日 夜 晚 晩 朝 早 年 月 天"
)
GENERIC = _words(
    "use uses used using choose chose chosen adopt adopted decide decided pick select prefer switch take go "
    "will shall should must may can let it this these all any with by from to via through as for per into "
    "which what who whom when where how why if or but than then so such only just more most less other some any each both "
    "have has had was were they them he she you your i me my his her about after before into onto out up down over under "
    "between during while because could would might one said there here very already still again always instead per "
    "migrate migrates stay get gets got receive receives given gives give held hold happens happen scheduled stays remain remains remote only anymore longer "
    "need needs require requires required run runs set new place takes take "
    "verwenden verwendet nutzen nutzt nehmen nimmt setzen setzt einsetzen wählen gewählt dürfen darf müssen muss können "
    "kann soll sollen für mit von vom zu zum zur über auf bei nach per aus an läuft laufen findet statt neue neuen neuer "
    "braucht brauchen als nur noch sich lang lange mehr nicht ins bekommt bekommen erhält erhalten gibt nun künftig weiterhin "
    "bleibt bleiben tritt treten alle allen sowie oder erst etwa "
    "utiliser utilisons utilise choisir choisi adopter retenir prendre doit doivent peut peuvent pour par avec vers se "
    "comme lieu tient tiennent uniquement seulement plus désormais reçoit reçoivent reste restent passe garde on ou bout moins "
    "located situated befindet befinden trouve trouvent situé située situés situées находится находятся расположен расположена расположены "
    "s en dans sur sous ce cette tout toute tous toutes fait font exige "
    "использовать используем выбрать выбрали берем применяем для с со по к ко из от за под над через это все "
    "переходим переезжаем оставляем остаемся получает получают проходит проходят остается остаются теперь только больше будет будут станет течение качестве как что или "
    "можно нужно нужны должен должны новые новый "
    "service services system systems team teams project projects tool tools component module "
    "dienst dienste équipe équipes projet outil служба службы система команда проект"
)
ROLES = _words("as als comme как качестве")
"""What follows says in which role something is chosen: "PostgreSQL as the database", "Redis as the cache"."""
EXCLUSIVE = _words(
    "only solely exclusively just nur ausschließlich lediglich uniquement seulement exclusivement только исключительно лишь 只 仅 のみ だけ"
)
PREPOSITIONS = _words(
    "in on at by with from via into auf mit bei von aus nach per im am en dans sur par avec chez à au в на с из по через 在 于 通过 由 用 以"
)
PREFERRING = _words(
    "over than instead rather before above statt anstatt anstelle vor lieber als plutôt avant préférer préférons вместо чем лучше"
)
"""With one of these the order of two names is the decision."""
_CONTRASTS = (
    ("more most over above mehr über plus plusieurs sur больше более выше свыше над", "less least fewer under below weniger unter moins "
     "sous меньше менее ниже под"),
    ("before vor bevor avant до перед", "after nach nachdem après после"),
    ("up auf hoch вверх", "down ab runter вниз"),
    ("all alle allen tous toutes tout toute все всем всех", "some einige manche certains certaines quelques некоторые"),
    ("into hinein внутрь", "out heraus hinaus dehors наружу"),
)  # fmt: skip
CONTRASTING = {
    word: (number, side)
    for number, sides in enumerate(_CONTRASTS)
    for side, words in enumerate(sides)
    for word in words.split()
}
"""Small words of degree, order, direction and amount: texts that differ in one do not say the same."""
FROM, TO = _words("from von vom aus depuis из с"), _words("to into nach zu zum zur vers à в на к")
"""With one of each the order of two names says where it goes."""
DAYTIMES = {
    "上午": "am",
    "午前": "am",
    "下午": "pm",
    "午後": "pm",
    "早上": "morning",
    "晚上": "evening",
    "夜间": "night",
}
ADDITIVE = _words(
    "support supports include includes contain contains provide provides offer offers "
    "unterstützt enthält bietet contient propose comprend поддерживает содержит включает "
    "支持 包含 提供 対応"
)
PERMITTING = _words("can may kann können darf dürfen peut peuvent может могут можно 可以")

NUMBER_WORDS = _numbered(
    (0, "zero null zéro ноль"),
    (1, "one eins один одна одно одного одной одному одним"),
    (2, "two zwei deux два две двух двум двумя"),
    (3, "three drei trois три трех трем тремя"),
    (4, "four vier quatre четыре четырех"),
    (5, "five fünf cinq пять пяти"),
    (6, "six sechs шесть шести"),
    (7, "seven sieben sept семь семи"),
    (8, "eight acht huit восемь восьми"),
    (9, "nine neun девять девяти"),
    (10, "ten zehn dix десять десяти"),
    (11, "eleven elf onze одиннадцать"),
    (12, "twelve zwölf douze двенадцать двенадцати"),
    (13, "thirteen dreizehn treize тринадцать"),
    (14, "fourteen vierzehn quatorze четырнадцать"),
    (15, "fifteen fünfzehn quinze пятнадцать"),
    (16, "sixteen sechzehn seize шестнадцать"),
    (17, "seventeen siebzehn семнадцать"),
    (18, "eighteen achtzehn восемнадцать"),
    (19, "nineteen neunzehn девятнадцать"),
    (20, "twenty zwanzig vingt двадцать двадцати"),
    (30, "thirty dreißig dreissig trente тридцать тридцати"),
    (40, "forty vierzig quarante сорок"),
    (50, "fifty fünfzig cinquante пятьдесят пятидесяти"),
    (60, "sixty sechzig soixante шестьдесят шестидесяти"),
    (70, "seventy siebzig семьдесят"),
    (80, "eighty achtzig восемьдесят"),
    (90, "ninety neunzig девяносто"),
    (100, "hundred hundert cent сто ста"),
    (1000, "thousand tausend mille тысяча тысячи тысяч"),
)

MONTHS = {
    word: f"month:{value}"
    for word, value in _numbered(
        (1, "january januar jänner janvier январь января январе"),
        (2, "february februar février февраль февраля феврале"),
        (3, "march märz mars март марта марте"),
        (4, "april avril апрель апреля апреле"),
        (5, "may mai май мая мае"),
        (6, "june juni juin июнь июня июне"),
        (7, "july juli juillet июль июля июле"),
        (8, "august août август августа августе"),
        (9, "september septembre сентябрь сентября сентябре"),
        (10, "october oktober octobre октябрь октября октябре"),
        (11, "november novembre ноябрь ноября ноябре"),
        (12, "december dezember décembre декабрь декабря декабре"),
    ).items()
}
CAPITAL_MONTHS = _words("may march august mars")

WEEKDAYS = {
    word: f"weekday:{value}"
    for word, value in _numbered(
        (1, "monday mondays montag montags lundi lundis понедельник понедельника понедельникам"),
        (2, "tuesday tuesdays dienstag dienstags mardi mardis вторник вторника вторникам"),
        (3, "wednesday wednesdays mittwoch mittwochs mercredi mercredis среду средам"),
        (4, "thursday thursdays donnerstag donnerstags jeudi jeudis четверг четверга четвергам"),
        (5, "friday fridays freitag freitags vendredi vendredis пятница пятницу пятницы пятницам"),
        (6, "saturday saturdays samstag samstags sonnabend samedi samedis суббота субботу субботы субботам"),
        (7, "sunday sundays sonntag sonntags dimanche dimanches воскресенье воскресенья воскресеньям"),
    ).items()
}

IRREGULAR = {
    "kept": "keep",
    "sent": "send",
    "built": "build",
    "written": "write",
    "wrote": "write",
    "made": "make",
    "held": "hold",
    "ran": "run",
    "took": "take",
    "taken": "take",
}
LATIN_ENDINGS = ("ings", "ing", "ées", "ied", "ies", "ed", "es", "en", "em", "ée", "és", "s", "e", "é", "n")
CYRILLIC_ENDINGS = (
    *("иями", "ями", "ами", "ого", "его", "ому", "ему", "ыми", "ими", "ются", "ется", "ится", "ятся"),
    *(
        "ия",
        "ии",
        "ию",
        "ий",
        "ый",
        "ой",
        "ей",
        "ое",
        "ее",
        "ая",
        "яя",
        "ую",
        "юю",
        "ые",
        "ие",
        "ым",
        "им",
        "ых",
        "их",
    ),
    *("ом", "ем", "ам", "ям", "ах", "ях", "ов", "ев", "ет", "ит", "ют", "ут", "ат", "ят", "ть"),
    *("а", "я", "ы", "и", "о", "е", "у", "ю", "ь"),
)

# Phrases with a negating character that do not negate; they are tried before the negations.
HAN_NOT_NEGATING = _phrases(
    "不得不 对不起 差不多 不锈钢 不动产 不動産 不思議 不具合 不错 不过 不仅 不但 不断 不同 不久 不管 不论 不妨 不止 不等 不时 "
    "不安 不正 不明 未来 未免 除非 非常 非洲 非凡 莫非 是非 无论 无数 无线 无疑 无缝 无锡 无人机 無料 無線 無事 無数 無限 "
    "沉没 埋没 没收 分别 特别 区别 级别 类别 性别 个别 别墅 别名 别人 识别 辨别 差别 告别 特別 区別 個別 別途 別名"
)
HAN_NEGATIONS = _phrases(
    "不可以 不允许 没有 無し 禁止 不得 不能 不可 无法 切勿 请勿 并非 绝不 从不 从未 尚未 不 没 無 无 未 勿 非 别"
)
HAN_FIXED = _phrases(
    "一般 一定 一样 一起 一致 一些 一旦 一直 一切 一律 一部 一時 一覧 一緒 統一 统一 唯一 万一 万能 十分 百分 千万 三方 单一 同一"
)
HAN_GENERIC = _phrases(
    "位于 位於 使用 采用 改用 选择 选用 决定 採用 利用 需要 必要 可以 进行 实施 每次 服务 系统"
)
HAN_STOP = _phrases("目前 现在 現在 的 了 会被 里 中 在 个 该 这 这个 是 为 以")

KANA_NOT_NEGATING = _phrases(
    "なければならない なければなりません なくてはならない ないといけない かもしれない かもしれません だけでなく まもなく"
)
KANA_NEGATIONS = _phrases(
    "されていません されていない されません されない していません していない しません しない できません できない "
    "ではありません ではない ではなく でなく ありません なかった ません ずに なく ない なし"
)
KANA_PARTICLES = ("から", "まで", "より", "が", "を", "に", "へ")
PARTICLES_OF_PLACE = ("で", "に", "へ", "から", "まで")
KANA_GRAMMAR = _phrases(
    "されています されている されていた されます される された しています している します した して する こと "
    "であります である であり でした です では でも には とは ました ます ています ている てある あります ある "
    "います いる は で と も の や"
)
KANA_ABLE = _phrases("できます できる")
HAN_NEGATED_ADJECTIVES = frozenset("少危汚切")
