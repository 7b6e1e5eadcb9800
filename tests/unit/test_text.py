"""Comparing texts by their words: what makes a duplicate, what never does, and what is about one thing."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_git.domain.reading import read
from memory_git.domain.text import compare, is_duplicate, normalize, restates, text_digest
from memory_git.domain.topics import alike_topic, topic_words

SAME = {
    "case": ("Use Redis", "use REDIS"),
    "white space": ("use\t redis\n", "use redis"),
    "sharp s": ("Straße", "STRASSE"),
    "composed and decomposed": ("Café", "Cafe\u0301"),
    "full width": ("ＡＰＩ１", "API1"),
    "half-width katakana": ("ｻｰﾊﾞｰ", "サーバー"),
    "a full stop at the end": ("it works.", "it works"),
    "typographic apostrophe": ("it’s", "it's"),
    "a soft hyphen and a zero-width space": ("data\u00adbase\u200b", "database"),
}


@pytest.mark.parametrize(("a", "b"), SAME.values(), ids=SAME.keys())
def test_spellings_of_one_text_are_the_same(a: str, b: str) -> None:
    assert normalize(a) == normalize(b)
    assert text_digest(a) == text_digest(b)
    assert compare(a, b).same
    assert compare(a, b).similarity == 1.0


NOT_SAME = {
    "a question": ("it works.", "it works?"),
    "an inner full stop": ("v1.2", "v12"),
    "an operator": ("a < b", "a > b"),
    "an inner exclamation mark": ("a != b", "a = b"),
    "only marks": ("...", "!!!?"),
    "a sign": ("✅ deploy", "❌ deploy"),
    "a leading minus": ("limit -5", "limit 5"),
}


@pytest.mark.parametrize(("a", "b"), NOT_SAME.values(), ids=NOT_SAME.keys())
def test_punctuation_that_matters_keeps_texts_apart(a: str, b: str) -> None:
    assert not compare(a, b).same
    assert not is_duplicate(a, b)


NEVER_DUPLICATES: dict[str, tuple[str, str, str | None]] = {
    "allowed, not allowed": ("Deployment is allowed", "Deployment is not allowed", "negation"),
    "a contraction": ("It does reload", "It doesn't reload", "negation"),
    "a contraction with a curly mark": ("It can reload", "It can’t reload", "negation"),
    "can, cannot": ("Guests can vote", "Guests cannot vote", "negation"),
    "with, without": ("Merge with review", "Merge without review", "negation"),
    "a negating prefix": ("The disk is encrypted", "The disk is unencrypted", "negation"),
    "German kein": ("Wir haben Zugang", "Wir haben keinen Zugang", "negation"),
    "French ne pas": ("Le test passe", "Le test ne passe pas", "negation"),
    "French elided ne": ("Il a accès", "Il n’a pas accès", "negation"),
    "Russian не": ("Система доступна", "Система не доступна", "negation"),
    "Russian нет": ("Есть доступ", "Нет доступа", "negation"),
    "Chinese 不": ("可以上线", "不可以上线", "negation"),
    "Chinese 没有": ("有权限", "没有权限", "negation"),
    "Chinese 禁止": ("允许外网访问", "禁止外网访问", "negation"),
    "Chinese 未": ("合同已签署", "合同未签署", "negation"),
    "Japanese ない": ("使える", "使えない", "negation"),
    "Japanese ません": ("公開します", "公開しません", "negation"),
    "Spanish no": ("El puerto está abierto", "El puerto no está abierto", "negation"),
    "Dutch niet": ("De poort is open", "De poort is niet open", "negation"),
    "Polish nie": ("Port jest otwarty", "Port nie jest otwarty", "negation"),
    "Arabic لا": ("يعمل النظام", "لا يعمل النظام", "negation"),
    "the 15th, the 16th": ("The deadline is the 15th", "The deadline is the 16th", "date"),
    "an ISO date": ("Ends on 2026-03-31", "Ends on 2026-04-01", "date"),
    "a month": ("Starts in March", "Starts in May", "date"),
    "a weekday": ("We meet on Monday", "We meet on Friday", "date"),
    "a time": ("The job runs at 02:00", "The job runs at 03:00", "date"),
    "a Chinese date": ("五月十五日交付", "五月十六日交付", "date"),
    "a Japanese weekday": ("会議は月曜日", "会議は金曜日", "date"),
    "a number": ("Keep 30 copies", "Keep 31 copies", "number"),
    "a number word": ("Keep two copies", "Keep three copies", "number"),
    "a version": ("Runs on Python 3.11", "Runs on Python 3.12", "number"),
    "a Chinese numeral": ("需要两人审核", "需要三人审核", "number"),
    "a decimal": ("Costs 1.5 euros", "Costs 15 euros", "number"),
    "we chose X over Y": ("We chose Kafka over RabbitMQ", "We chose RabbitMQ over Kafka", "name"),
    "statt": ("Wir nehmen Go statt Rust", "Wir nehmen Rust statt Go", None),
    "而不是": ("选择 Kafka 而不是 Pulsar", "选择 Pulsar 而不是 Kafka", "name"),
    "a name": ("The server is in Oslo", "The server is in Bergen", "name"),
    "a file": ("Edit app.yaml first", "Edit base.yaml first", "name"),
    "an identifier": ("Call get_user first", "Call get_users first", "name"),
    "subject and object": ("The gateway checks the worker", "The worker checks the gateway", None),
    "a German dative": ("Der Client hilft dem Server", "Dem Client hilft der Server", None),
    "Japanese particles": ("門番が鍵を探す", "門番を鍵が探す", None),
    "employer, employee": ("The employer signs", "The employee signs", None),
    "all, some": ("All pages are cached", "Some pages are cached", None),
    "and, or": ("Needs key and token", "Needs key or token", None),
    "before, after": ("Test before release", "Test after release", None),
    "may, must": ("Reviewers may approve", "Reviewers must approve", None),
    "only": ("Admins may deploy", "Only admins may deploy", None),
    "a word more": ("The cache is cleared", "The cache is cleared twice daily", None),
    "another word": ("The staging disk is full", "The production disk is full", None),
    "a language nobody here knows": ("Kompyuta ni nyekundu", "Kompyuta ni kijani", None),
}


@pytest.mark.parametrize(("a", "b", "difference"), NEVER_DUPLICATES.values(), ids=NEVER_DUPLICATES.keys())
def test_a_text_that_says_something_else_is_never_a_duplicate(a: str, b: str, difference: str | None) -> None:
    found = compare(a, b)
    assert not found.is_near
    assert difference is None or difference in found.differs_in
    assert compare(b, a) == found


NEAR = {
    "an article": ("The cache is cleared", "Cache is cleared"),
    "each, every": ("Rebuilt every Monday", "Rebuilt each Monday"),
    "a contraction": ("It does not reload", "It doesn't reload"),
    "a phrase moved": ("On Mondays the cluster is rebuilt", "The cluster is rebuilt on Mondays"),
    "a hyphen": ("Short e-mails are preferred", "Short emails are preferred"),
    "a number word": ("Keep two copies", "Keep 2 copies"),
    "a grouped number": ("It is 10,000 messages", "It is 10000 messages"),
    "German word order": ("Montags wird der Speicher geleert", "Der Speicher wird montags geleert"),
    "Chinese 的": ("会议室的钥匙在前台", "会议室钥匙在前台"),
    "Japanese politeness": ("鍵は金庫に保管する", "鍵は金庫に保管します"),
}


@pytest.mark.parametrize(("a", "b"), NEAR.values(), ids=NEAR.keys())
def test_the_same_words_with_other_small_words_are_near_duplicates(a: str, b: str) -> None:
    assert is_duplicate(a, b)
    assert compare(a, b).similarity > 0.3


NO_NEGATION = [
    "方案非常不错",
    "未来的计划",
    "除非另有说明",
    "特别的区别",
    "无线网络",
    "不同的级别",
    "必ず確認する",
    "まず記録する",
    "かもしれない",
]
NEGATION = [
    "方案并非最终",
    "尚未发布",
    "无法连接",
    "请勿修改",
    "使えない",
    "公開しません",
    "no access",
    "ohne Zugang",
]


@pytest.mark.parametrize("text", NO_NEGATION)
def test_a_character_that_only_contains_a_negation_is_not_one(text: str) -> None:
    assert read(text).negations == 0


@pytest.mark.parametrize("text", NEGATION)
def test_a_negation_is_counted_once(text: str) -> None:
    assert read(text).negations == 1


ALIKE = {
    "another database": ("Use PostgreSQL for the billing service", "Use MySQL for the billing service"),
    "another database, one topic word": ("Use PostgreSQL for billing", "Use MySQL for billing"),
    "a common noun as the value": ("Use tabs for indentation", "Use spaces for indentation"),
    "allowed or not": ("Friday deployments are allowed", "Friday deployments are not allowed"),
    "a number": ("Audit logs are kept 30 days", "Audit logs are kept 90 days"),
    "a number of one name": ("The Berlin office closes at 18:00", "The Berlin office closes at 19:00"),
    "a permission with another number": (
        "Employees may work from home three days a week",
        "Employees may work from home one day a week",
    ),
    "the other way": (
        "Traffic flows from Varnish to Nginx",
        "Traffic flows from Nginx to Varnish",
    ),
    "Chinese": ("前端界面采用 React 开发", "前端界面采用 Vue 开发"),
    "Japanese": ("管理画面は React で実装する", "管理画面は Vue で実装する"),
    "Russian": ("Панель управления пишем на React", "Панель управления пишем на Vue"),
}
NOT_ALIKE = {
    "one tool, two things": ("Use PostgreSQL for the billing service", "Use PostgreSQL for the search index"),
    "one thing, two sides of it": (
        "Use PostgreSQL for the billing service",
        "The billing service publishes events to Kafka",
    ),
    "the same verb": ("Use tabs for indentation", "Use Grafana for dashboards"),
    "two purposes": ("Use tabs for indentation", "Use tabs for alignment"),
    "two things with one value": ("Backend logs are kept 30 days", "Frontend logs are kept 30 days"),
    "another number of another name": (
        "The Berlin office closes at 18:00",
        "The Paris office closes at 19:00",
    ),
    "another number of a name and of a word": (
        "HTTP timeouts are set to 30 seconds",
        "Database timeouts are set to 5 seconds",
    ),
    "names around a shared word": (
        "The European cluster runs in Frankfurt",
        "The American cluster runs in Virginia",
    ),
    "allowed here, not there": (
        "Contractors may access the staging database",
        "Contractors may not access the production database",
    ),
    "two permissions": ("Customers can cancel at any time", "Customers can upgrade at any time"),
    "two lists that add up": ("We support Firefox and Chrome", "We support English and German"),
    "two abilities": ("The mobile app supports dark mode", "The mobile app supports offline mode"),
    "nothing in common": ("Visitors sign in at the desk", "The parser keeps comments"),
    "no words": ("...", "???"),
    "numbers alone": ("42", "43"),
}


@pytest.mark.parametrize(("a", "b"), ALIKE.values(), ids=ALIKE.keys())
def test_decisions_about_one_thing_are_alike(a: str, b: str) -> None:
    assert alike_topic(a, b)
    assert alike_topic(b, a)
    assert set(topic_words(a)) & set(topic_words(b))


@pytest.mark.parametrize(("a", "b"), NOT_ALIKE.values(), ids=NOT_ALIKE.keys())
def test_decisions_about_different_things_are_not_alike(a: str, b: str) -> None:
    assert not alike_topic(a, b)
    assert not alike_topic(b, a)


RESTATED = {
    "a phrase moved": ("On holidays the office is closed", "The office is closed on holidays"),
    "where something is": ("The head office is located in Berlin", "The head office is in Berlin"),
    "a number without its space": ("The team meets at 10 am", "The team meets at 10am"),
    "Russian, where something is": ("Склад находится в Казани", "Склад в Казани"),
}
NOT_RESTATED = {
    "more, less": ("Keep more than 5 backups", "Keep less than 5 backups"),
    "before, after": ("Tests run before deployment", "Tests run after deployment"),
    "over, under": ("Alarms go off over 80 percent", "Alarms go off under 80 percent"),
    "all, some": ("All users are notified", "Some users are notified"),
    "another sign": ("The price is $5", "The price is €5"),
    "greater, smaller": ("Load < 5", "Load > 5"),
    "the other way": ("Traffic flows from A to B", "Traffic flows from B to A"),
    "German": ("Mehr als fünf Kopien", "Weniger als fünf Kopien"),
    "French": ("Plus de 5 copies", "Moins de 5 copies"),
    "Russian": ("Тесты идут до выпуска", "Тесты идут после выпуска"),
}


@pytest.mark.parametrize(("a", "b"), RESTATED.values(), ids=RESTATED.keys())
def test_the_same_said_otherwise_is_restated(a: str, b: str) -> None:
    assert is_duplicate(a, b) or restates(a, b)
    assert is_duplicate(b, a) or restates(b, a)


@pytest.mark.parametrize(("a", "b"), NOT_RESTATED.values(), ids=NOT_RESTATED.keys())
def test_another_degree_order_or_direction_restates_nothing(a: str, b: str) -> None:
    assert not (is_duplicate(a, b) or restates(a, b))
    assert not (is_duplicate(b, a) or restates(b, a))


MIXED = (
    "the a not no use Kafka Redis for logs 15 two Monday May nicht kein der без не 不 没有 非常 三个 月曜日 ない を が "
    "l' n'est pas 2026-01-02 10:30 < ! ? . - ' ’ ＡＰＩ É ß"
)
WORDS = st.sampled_from(MIXED.split())
TEXT = st.lists(WORDS, max_size=12).flatmap(
    lambda words: st.sampled_from([" ", ""]).map(lambda gap: gap.join(words))
)
ANY = TEXT | st.text(max_size=60)


@given(ANY, ANY)
def test_comparing_is_symmetric_and_never_fails(a: str, b: str) -> None:
    found = compare(a, b)
    assert found == compare(b, a)
    assert alike_topic(a, b) == alike_topic(b, a)
    assert 0.0 <= found.similarity <= 1.0
    assert found.same == (text_digest(a) == text_digest(b))
    assert not (found.is_near and found.differs_in)


@given(ANY)
def test_a_text_is_a_duplicate_of_itself_and_normalizing_twice_changes_nothing(text: str) -> None:
    assert compare(text, text).same
    assert normalize(normalize(text)) == normalize(text)
    assert compare(text, unicodedata.normalize("NFD", text)).same


HUGE = {
    "words": "The cache is cleared every night. " * 480,
    "digits": "1" * 16_000,
    "digits and points": "11.11," * 2700,
    "digits and a letter": "1" * 16_000 + "a",
    "letters": "a" * 16_000,
    "joined words": "a-b_c." * 2700,
    "one long sentence": "word " * 3200,
    "Chinese": "不得不说这个方案非常不错" * 450,
    "numerals": "一万" * 2700,
    "hiragana": "なければ" * 1300,
    "signs": "<>!?" * 4000,
    "apostrophes": "n't'" * 4000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
def test_the_largest_contents_are_compared_in_linear_time(text: str) -> None:
    before = time.process_time()
    compare(text, text[1:] + "x")
    alike_topic(text, text[::-1])
    assert time.process_time() - before < 1.5


@pytest.mark.parametrize("text", ["", "N'T", "n't", "'", "l'", "²", "½"])
def test_a_text_of_next_to_nothing_compares_with_any(text: str) -> None:
    for other in ("", "N'T use", "2"):
        assert compare(text, other).same == (text == other)
        assert not alike_topic(text, other)


# texts that differ in a number, whatever the locale: never duplicates
OTHER_NUMBERS = {
    "grouped here, decimal there": ("The limit is 1,200", "The limit is 1.200"),
    "the same in German": ("Die Grenze ist 1.200", "Die Grenze ist 1,200"),
    "no language to go by": ("limit 1,200", "limit 1200"),
    "a space that may part two numbers": ("rooms 1 200", "rooms 1200"),
    "an exponent": ("limit is 1e3", "limit is 1000"),
    "a fraction turned round": ("½ cup", "2/1 cup"),
    "a date of figures": ("on 03/04/2026", "on 04/03/2026"),
    "a short date of figures": ("on 3/4/26", "on 4/3/26"),
    "versions": ("version 1.10", "version 1.1"),
    "metres and feet": ("5 m long", "5 ft long"),
    "currencies by name": ("20 EUR a month", "20 USD a month"),
    "currencies by sign": ("$20 a month", "€20 a month"),
    "a share": ("50% of all", "50 of all"),
    "morning and evening": ("the call is at 5 am", "the call is at 5 pm"),
    "signs": ("offset +5", "offset -5"),
    "a scale turned round": ("scale 1:10", "scale 10:1"),
    "a range turned round": ("10-20 people", "20-10 people"),
    "a superscript": ("10² users", "102 users"),
    "a mixed fraction": ("1½ hours", "11/2 hours"),
    "decimals of two spellings": ("1,5 kg", "1.5 kg"),
    "Japanese": ("上限は1,200件", "上限は1.200件"),
    "Chinese numerals": ("三十个节点", "三个节点"),
}
SAME_NUMBERS = {
    "grouping that can be nothing else": ("holds 1,200,000 rows", "holds 1200000 rows"),
    "apostrophes": ("holds 1'200 rows", "holds 1200 rows"),
    "both signs": ("costs 1,234.50 a year", "costs 1.234,50 a year"),
    "English groups by commas": ("The limit is 1,200", "The limit is 1200"),
    "German groups by full stops": ("Die Grenze ist 1.200", "Die Grenze ist 1200"),
    "full width": ("limit is １２００", "limit is 1200"),
    "a word": ("three nodes", "3 nodes"),
    "Chinese numerals": ("三个节点", "3个节点"),
}


@pytest.mark.parametrize(("a", "b"), OTHER_NUMBERS.values(), ids=OTHER_NUMBERS.keys())
def test_another_number_is_never_a_duplicate(a: str, b: str) -> None:
    assert not is_duplicate(a, b)
    assert not is_duplicate(b, a)


@pytest.mark.parametrize(("a", "b"), SAME_NUMBERS.values(), ids=SAME_NUMBERS.keys())
def test_one_number_in_two_spellings_is_one(a: str, b: str) -> None:
    assert is_duplicate(a, b)
    assert is_duplicate(b, a)
