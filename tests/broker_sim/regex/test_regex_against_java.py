"""Random expressions, compared with RE2/J, Java and Kafka's principal mapper from the real jars."""

import os
from random import Random

import pytest

WORDS = (
    r"a b 1 A k K - _ . ^ $ | ( ) (?: (?i) (?i: (?s) (?m) (?-i) (?im-s: * + ? *? +? ?? {2} {1,2} {0,} {,2} {0} { } [ ]"
    r" [^ [a-c] [^a] [ab-] [[:alpha:]] [[:^digit:]_] [\d_] \d \D \w \W \s \b \B \A \z \Z \pL \p{Lu} \P{L} \p{Greek}"
    r" \x61 \x{62} \Q \E \Qa.b\E \n \t \\ \. \1 \07 & && , (?= (?<x> (?P<y> (?! ++ *+ \h \R \a"
)
PARTS = [*WORDS.split(" "), "\u00e4", "\u03b1", "\u017f"]
LETTERS = "abAB1kK-_.ä\u03b1\n \\&\u017f"
REPLACEMENTS = ["$1", "$2", "$0", "$12", "x$3-$4", "", "$", r"\$1", "${x}"]
EXPRESSIONS = int(os.environ.get("REGEX_EXPRESSIONS", "20000"))


def draw_expression(random):
    parts = (random.choice(PARTS) if random.random() < 0.75 else random.choice("ab1A") for _ in range(7))
    return "".join(list(parts)[: random.randint(1, 7)])


def draw_text(random):
    return "".join(random.choice(LETTERS if random.random() < 0.5 else "ab") for _ in range(random.randint(0, 4)))


@pytest.mark.real_kafka
@pytest.mark.soak(part="kafka_classes")
@pytest.mark.parametrize("dialect", ["re2j", "java", "principal"])
def test_random_expressions_get_the_same_verdicts(dialect, assert_same, kafka_class_files):

    from tools.update_regex_tables import Verdict, ask

    seed = int(os.environ.get("BROKER_SIM_SEED", Random().randrange(2**32)))
    print(f"BROKER_SIM_SEED={seed}")
    random = Random(seed)
    verdicts = []
    for _ in range(EXPRESSIONS):
        expression = draw_expression(random)
        texts = dict.fromkeys([expression, *(draw_text(random) for _ in range(6))])
        if dialect == "principal":
            expression = f"RULE:{expression}/x{random.choice(REPLACEMENTS)}/"
        verdicts.append(Verdict(dialect, expression, texts))
    for verdict in ask(verdicts, kafka_class_files):
        assert_same(verdict)
