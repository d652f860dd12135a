"""Names in any script: which are taken, which look alike, and that none gets into a grammar."""

import dataclasses

import pytest
from lbconfig_samples import SAMPLE, WEB, problems_at, with_service

from lbconfig.model.firewall import Firewall, Rule
from lbconfig.model.problem import quote
from lbconfig.model.spelling import COMMENT, in_comment
from lbconfig.render import render
from lbconfig.validate.fields import service_name
from lbconfig.validate.services import validate

LONG = "\U00020000" * 64  # four bytes each


@pytest.mark.parametrize(
    "name", ["web", "Büro", "Bu\u0308ro", "Почта 2", "网站", "שרת", "خادم", "हिन्दी", "ßa.b_c-d", "1", "x" * 64, LONG]
)
def test_names_are_letters_of_any_script(name):
    assert service_name(name) is None
    assert validate(with_service(name=name)) == []


@pytest.mark.parametrize(
    "name",
    [
        "", " web", "web ", ".web", "_x", "-x", "x" * 65, "a\nb", "a\tb", "a\x1bb", "a\x00b", 'a"b', "a#b", "a{b",
        "a;b", "a\\b", "a$b", "a/b", "a:b", "a\u00a0b", "a\u2028b", "a\u202eb", "a\u200bb", "a\u200db", "a\ufeffb",
        "a\u3164b", "a\ufe0fb", "a\u034fb", "\u0308a", "a\u0300\u0301\u0302\u0303", "a\U0001f600", "a\ue000", "a\ud800",
    ],
)  # fmt: skip
def test_what_cannot_be_seen_or_means_something_is_no_letter(name):
    sentence = service_name(name)
    assert sentence and sentence.isprintable()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("web", "WEB"),
        ("Büro", "BÜRO"),
        ("Büro", "Bu\u0308ro"),
        ("Straße", "STRASSE"),
        ("cop", "с\u043e\u0440"),  # Cyrillic
        ("Почта", "почта"),
        ("BAKE", "ВАКЕ"),  # Cyrillic
        ("TO", "Τ\u039f"),  # Greek
        ("web", "ｗｅｂ"),  # full width
    ],
)
def test_two_that_look_alike_are_one(first, second):
    other = dataclasses.replace(SAMPLE.services[1], name=second)
    services = (dataclasses.replace(SAMPLE.services[0], name=first), other, *SAMPLE.services[2:])
    paths = [found.path for found in validate(dataclasses.replace(SAMPLE, services=services))]
    assert f"services[id={other.id}].name" in paths
    rules = Firewall((Rule(1, first, ports="22"), Rule(2, second, ports="22")))
    assert "firewall.rules[id=2].name" in [one.path for one in validate(dataclasses.replace(SAMPLE, firewall=rules))]


@pytest.mark.parametrize(("first", "second"), [("Büro", "Buro"), ("web1", "webl"), ("网站", "网页")])
def test_others_are_two(first, second):
    services = tuple(
        dataclasses.replace(one, name=name) for one, name in zip(SAMPLE.services, (first, second), strict=False)
    )
    assert validate(dataclasses.replace(SAMPLE, services=services + SAMPLE.services[2:])) == []


@pytest.mark.parametrize(
    ("text", "shown"), [("Büro", "'Büro'"), ("网站", "'网站'"), ("a\x1b\u202e", r"'a\x1b\u202e'"), ("it's", '"it\'s"')]
)
def test_text_is_quoted_as_it_was_typed(text, shown):
    assert quote(text) == shown


def test_a_problem_names_its_object_as_it_was_typed():
    problem = problems_at(with_service(name="Büro", port=0), "services[id=3].port")[0]
    assert problem.object == "virtual service 'Büro'"


@pytest.mark.parametrize("name", ["balance -f 5 id", "tunnel -f 5 -r 10.2.0.11 --tun-type"])
def test_a_name_is_no_comment_that_means_something(name):
    """Weights.pm and Table.pm read comments of ldirectord.cf that begin with these words."""
    assert f"\n# service {name}\n" in render(with_service(name=name))["ldirectord.cf"]


def test_a_long_name_fits_into_a_comment():
    assert in_comment("Büro") == "Büro"
    assert in_comment(LONG) == LONG[: COMMENT // 4] and len(in_comment("ü" * 64).encode()) == COMMENT
    files = render(with_service(name=LONG))
    for line in files["nftables.conf"].splitlines():
        for comment in line.split('comment "')[1:]:
            assert len(comment.partition('"')[0].encode()) <= 127
    assert f"# {LONG}\n" in files["ldirectord.cf"] and WEB.name not in files["ldirectord.cf"]
