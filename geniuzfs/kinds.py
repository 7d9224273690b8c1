"""The kind of answer that a question asks for, and that a passage could give: a time, or a name.

Hides: by which words and signs both are known, in English, German, French, Spanish and Russian;
times in Chinese, Japanese and Korean too.
Promises: pure; 14 us a turn of a conversation; what is not recognized is of no kind.
Refuses: to find the answer in the passage. A kind is a hint, worth a little in the ranking.
"""

import re

TIME = 1
"""When, or how long."""
NAME = 2
"""Of someone, of a place, of what has a title."""


def _any(lines: str) -> str:
    """Alternatives, one a line, as one pattern."""
    return "|".join(line.strip() for line in lines.strip().splitlines())


_ASKS_TIME = re.compile(
    _any(
        r"""
        ^(?:\w+\s)?when\b|\bhow\s(?:long|often)\b|\b(?:what|which)\s(?:year|month|date|day|time)\b
        \bwann\b|\bwie\s(?:lange|oft)\b|\bwelche[mnrs]?\s(?:jahr|monat|tag|datum|woche)
        \bquand\b|\bcombien\sde\stemps\b|\bquel(?:le)?\s(?:année|date|heure|jour|mois)\b
        \bcuándo\b|\bcuánto\stiempo\b|\bqué\s(?:año|mes|día|fecha|hora)\b
        \bкогда\b|\bкак\s(?:долго|давно|часто)\b|\bв\sкаком\s(?:году|месяце)\b|\bкакого\sчисла\b
        什么时候|什麼時候|何时|何時|多久|多长时间|多長時間|哪一?[年天]|[几幾哪]个?月|[几幾][号號]
        いつ|何[年月日]|언제|몇\s?[년월]|며칠|얼마나\s오래
        """
    ),
    re.IGNORECASE,
)

_ASKS_NAME = re.compile(
    _any(
        r"""
        ^(?:(?:in|at|to|from|with|for|by|of)\s)?(?:who|whom|whose|where|which)\b
        \bnamed?\b|\bcalled\W*$|\btitle\b
        ^(?:what|which)\s(?:[\w'’]+\s){0,4}(?:book|movie|film|song|band|game|series|show|team)s?\b
        ^(?:what|which)\s(?:[\w'’]+\s){0,4}(?:city|country|place|state|town|school|restaurant)s?\b
        ^(?:what|which)\s(?:[\w'’]+\s){0,4}(?:author|actor|artist|musician|brand|company)s?\b
        ^(?:\w+\s)?(?:wer|wen|wem|wessen|wohin|woher|wo|welche[mnrs]?)\b|\bheißt\b|\bhieß\b
        ^(?:\w+\s)?(?:qui|où|quel(?:le)?s?)\b|\bnom\b|\bs'appelle\b
        ^¿?(?:\w+\s)?(?:quiéne?s?|d[oó]nde|adónde|cuál(?:es)?)\b|\bnombre\b|\bse\sllama\b
        ^(?:\w+\s)?(?:кто|кого|кому|кем|где|куда|откуда|как(?:ой|ая|ое|ую|ом))\b|\bзовут\b|\bназыва
        """
    ),
    re.IGNORECASE,
)

# "Last" and "next" are here for the weeks and months after them; "week" and "just" are not, for
# too many turns have them. Neither are "may" and "march", which are verbs too, nor "hier", which is
# "here" in German.
_TIME_WORDS = frozenset(
    """
    yesterday today tonight tomorrow last next ago
    monday tuesday wednesday thursday friday saturday sunday
    january february april june july august september october november december
    gestern vorgestern heute morgen letzte letzten letzter letztes nächste nächsten nächster
    nächstes montag dienstag mittwoch donnerstag freitag samstag sonntag
    januar februar märz juni juli oktober dezember
    demain aujourd dernier dernière prochain prochaine
    lundi mardi mercredi jeudi vendredi samedi dimanche
    janvier février avril juin juillet août septembre octobre novembre décembre
    ayer anoche hoy mañana pasado pasada próximo próxima hace
    lunes martes miércoles jueves viernes sábado domingo
    enero febrero abril mayo junio julio agosto septiembre octubre noviembre diciembre
    вчера сегодня завтра назад прошлый прошлая прошлое прошлой прошлом прошлую прошлого
    следующий следующая следующее следующей следующем следующую следующего
    понедельник вторник среду четверг пятницу субботу воскресенье
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре
    """.split()  # noqa: SIM905
)
_WORD = re.compile(r"[^\W\d_]+")
_TIME_SIGNS = re.compile(
    r"\d|\b[Tt]his (?:past|week|month|year|morning|weekend|summer)\b"
    r"|[昨今明后後前去][天日年]|[上下](?:个|個)?[周週月]|星期|先[週月]|来[週月]|曜日"
    r"|어제|오늘|내일|지난|다음|요일"
)

# A capital within a sentence, or a title in quotation marks. After a comma it is mostly who is
# spoken to, after a stop any word. German nouns all have one: there it tells nothing, and does no
# harm. Scripts without capitals are left with the marks.
_SMALL = "a-zß-öø-ÿœа-яё"
_CAPITAL = "A-ZÀ-ÖØ-ÞŒА-ЯЁ"
_TELLS_NAME = re.compile(rf"[{_SMALL}] (?!I['’])[{_CAPITAL}][\w'’]*[{_SMALL}]|[\"“«„「『《]")


def asked_kinds(question: str) -> int:
    """The kinds that a question asks for, TIME | NAME; 0: none, or none that is recognized."""
    stripped = question.strip()
    time = TIME if _ASKS_TIME.search(stripped) else 0
    return time | (NAME if _ASKS_NAME.search(stripped) else 0)


def told_kinds(passage: str) -> int:
    """The kinds of answers that a passage could give, TIME | NAME. Without a turn's speaker."""
    time = TIME if _tells_time(passage) else 0
    return time | (NAME if _TELLS_NAME.search(passage) else 0)


def _tells_time(passage: str) -> bool:
    if _TIME_SIGNS.search(passage):
        return True
    return not _TIME_WORDS.isdisjoint(_WORD.findall(passage.lower()))
