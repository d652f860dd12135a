"""The words of the sentences that many tests ask the product for: each of them is spelled out here, and only here."""

import pytest

from applier.apply import runs
from console.dialogue import NOTHING_DONE
from draft import merge
from lbconfig.diff import cutoff, services
from lbconfig.model.problem import UNKNOWN_FIELD, UNPRINTABLE, written_as
from lbconfig.model.reading import wrong_type
from lbconfig.validate import fields
from web.fields import CHOOSE, PORT_NUMBER, PORT_RANGE, WHOLE_NUMBER

SENTENCES = {
    CHOOSE["required"]: "Choose one.",
    CHOOSE["invalid_choice"]: "Choose one of these.",
    merge.changed_to("alice"): "alice changed this to",
    WHOLE_NUMBER: "This must be a whole number.",
    PORT_NUMBER: "This must be a port number, or the name of a service such as https.",
    PORT_RANGE: "Must be 1 to 65535.",
    fields.in_range(0, 1, 65535): "must be 1 to 65535, not 0",
    fields.in_range(10**20, 1, 65535): "must be 1 to 65535, not a number of more than 20 digits",
    fields.given_twice("10.0.0.3"): "10.0.0.3 is given twice",
    fields.ip_address("10.0.2"): "must be an IP address such as 192.0.2.10 or 2001:db8::10, not '10.0.2'",
    written_as("2001:db8::1"): "must be written as 2001:db8::1",
    fields.interface_name("a b"): "must be 1 to 15 letters, digits, dots, underscores or hyphens, not 'a b'",
    fields.service_name("<b>"): (
        "must be 1 to 64 letters, digits, spaces, dots, underscores or hyphens, begin with "
        "a letter or digit and not end with a space; '<b>' is not"
    ),
    UNPRINTABLE: "contains a character that cannot be printed",
    UNKNOWN_FIELD: "is not a known field",
    wrong_type(int, True): "must be a whole number, not true or false",
    wrong_type(str, None): "must be text, not nothing",
    wrong_type(bool, 1): "must be true or false, not a number",
    NOTHING_DONE: "Nothing was done.\n",
    f"'eth9' {fields.NO_INTERFACE}": "'eth9' is not an interface of this box",
    cutoff.NETWORK_WORDS["gateway"]: "The default gateway changes.",
    services.REFUSED: "New connections may be refused for a moment.",
    runs.confirmed_sentence(2): "Revision 2 runs and is confirmed.",
    runs.confirmed_sentence(2, "bob"): "Revision 2 runs; bob confirmed it.",
    runs.waits_words("ann", 48): "the changes of ann wait to be confirmed (48 seconds left)",
    runs.in_vain_sentence(90): "Nobody confirmed the changes within 90 seconds, so the box went back by itself.",
}


@pytest.mark.parametrize(("said", "words"), SENTENCES.items(), ids=SENTENCES.values())
def test_a_sentence_is_spelled_as_it_should_be(said, words):
    assert said == words
