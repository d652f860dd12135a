"""What the web pages of two boxes have, on its way from one applier to the other one."""

from types import SimpleNamespace

import pytest
from two_boxes import OLD

from applier.pair.along import KEPT, WANTED, Along
from applier.pair.roles import LEADS, STANDS_BY, Role, role_text
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import FOR_PEER, VERBS, checked
from lbconfig.model.snapshot import FACTORY
from lbconfig.target import Target

ID = OLD.pair.id


class Box:
    """Asks the other one without a cable between them."""

    def __init__(self, number: int) -> None:
        self.running, self.confirmed, self.faults = Target(7, OLD, number), 7, {}
        self.faults = SimpleNamespace(set=lambda code, text: self.told.append(text))
        self.told: list[str | None] = []
        self.role, self.peer = STANDS_BY, SimpleNamespace(beat=SimpleNamespace(role=STANDS_BY))
        self.host = SimpleNamespace(read=lambda path: role_text(Role(self.role, 0.0, "")))
        self.paths = SimpleNamespace(role="role")
        self.errands = self
        self.along = Along(self)
        self.other: Box | None = None

    def ask(self, verb, arguments, within):
        if self.other is None:
            raise ApplierRefused("peer-away", "lb2 is not heard.")
        return getattr(self.other.along, checked(verb, dict(arguments), FOR_PEER).verb)(**arguments)


@pytest.fixture
def boxes():
    first, second = Box(0), Box(1)
    first.other, second.other = second, first
    return first, second


def refusal(call, *arguments) -> str:
    with pytest.raises(ApplierRefused) as caught:
        call(*arguments)
    return caught.value.code


def test_a_document_is_brought_once_it_was_wanted_and_offered(boxes):
    first, second = boxes
    first.along.pair_along({"draft": "1"}, "")
    state = second.along.pair_along({"draft": "0"}, "")
    assert (state["pair"], state["box"], state["own"], state["other"]) == (ID, 1, "lb2", "lb1")
    assert state["theirs"] == {"draft": "1"} and state["revision"] == 7
    first.along.pair_offer("draft", "nobody wants it yet")
    assert refusal(second.along.pair_bring, "draft") == "not-offered"
    assert first.along.pair_along({"draft": "1"}, "")["wanted"] == ["draft"]
    first.along.pair_offer("draft", "the draft")
    assert first.along.pair_along({"draft": "1"}, "")["wanted"] == []
    assert second.along.pair_bring("draft") == {"text": "the draft"}
    assert refusal(second.along.pair_bring, "draft") == "not-offered"  # it lies here no longer than that


def test_only_a_few_lie_here(boxes):
    first, second = boxes
    first.along.pair_along({}, "")
    for number in range(WANTED + 5):
        assert refusal(second.along.pair_bring, f"revision {number}") == "not-offered"
    wanted = first.along.pair_along({}, "")["wanted"]
    assert wanted == [f"revision {number}" for number in range(5, WANTED + 5)]
    for name in wanted:
        first.along.pair_offer(name, "long")
    found = [name for name in wanted if name in first.along._documents]
    assert found == wanted[-KEPT:]


def test_nothing_goes_along_to_another_pair_or_from_a_box_without_one(boxes):
    first, second = boxes
    first.along.pair_along({"draft": "1"}, "")
    first.running = Target(8, FACTORY)
    assert second.along.pair_along({}, "")["theirs"] == {}
    assert refusal(second.along.pair_bring, "draft") == "not-offered"
    state = first.along.pair_along({"draft": "1"}, "nobody is told")
    assert state["pair"] == "" and state["theirs"] is None and first.told[-1] is None
    second.other = None
    assert second.along.pair_along({}, "it is told")["theirs"] is None and second.told[-1] == "it is told"


@pytest.mark.parametrize("stamps", [{"draft": 3}, {"x" * 300: "1"}, {str(one): "1" for one in range(9)}, ["1"], None])
def test_stamps_that_are_none_are_as_good_as_none(boxes, stamps):
    first, second = boxes
    second.along.along_stamps = lambda: {"stamps": stamps}
    assert first.along.pair_along({}, "")["theirs"] is None
    assert refusal(checked, "pair_along", {"stamps": stamps, "trouble": ""}, VERBS) == "bad-field"


@pytest.mark.parametrize(
    ("own", "other", "first_is", "second_is"),
    [
        (LEADS, STANDS_BY, True, True),
        (STANDS_BY, LEADS, False, False),
        (LEADS, LEADS, True, False),
        (STANDS_BY, STANDS_BY, True, False),
    ],
)
def test_which_box_is_the_desk(boxes, own, other, first_is, second_is):
    for box, wanted in zip(boxes, (first_is, second_is), strict=True):
        box.role, box.peer.beat.role = own, other
        assert box.along.pair_along({}, "")["desk"] is wanted


@pytest.mark.parametrize("name", ["../x", "draft\n", "revision 12345678901", ""])
def test_a_name_is_the_name_of_a_document(name):
    assert refusal(checked, "along_document", {"name": name}, FOR_PEER) == "bad-field"
