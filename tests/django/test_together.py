"""Users, draft and history of a pair: what the other box has newer is taken, and nothing older ever replaces it."""

import dataclasses
import json

import pytest
from django.contrib.auth import get_user_model
from tests.django.conftest import PASSWORD
from tests.fake import appliance
from tests.fake.pair import sample

from accounts import along, credentials, ledger, tokens
from accounts.ledger import Ledger, TokenEntry, UserEntry, secret_digest
from accounts.models import ApiToken
from applier.pair.roles import LEADS, STANDS_BY
from changes import copies
from changes.models import Revision, SetAside
from draft import copies as drafts
from draft import store as draft
from draft.copies import Stamp, step
from draft.models import Draft
from lbconfig.model.reading import SnapshotError
from lbconfig.model.snapshot import Scheduler
from system import together
from system.models import Together
from system.together import DRAFT, FORMAT, HISTORY, USERS, Seen

PAIR = "0123456789abcdef" * 2


class Other:
    """What the other box said when it was as this one is now."""

    def __init__(self, box) -> None:
        self.box = box
        self.stamps = together._stamps() | {"pair": PAIR}
        self.texts = {name: together._text(name) for name in (USERS, DRAFT, HISTORY)}
        for number in Revision.objects.values_list("number", flat=True):
            self.texts[f"revision {number}"] = copies.whole(number)

    def is_heard(self, leads: bool = True, rounds: int = 2) -> Seen:
        self.box.pair.theirs, self.box.pair.texts = self.stamps, self.texts
        own, peer = self.box.pair.own, self.box.pair.peer
        self.box.pair.own = dataclasses.replace(own, role=STANDS_BY if leads else LEADS)
        self.box.pair.peer = dataclasses.replace(peer, role=LEADS if leads else STANDS_BY)
        seen = Seen(paired=True)
        for _ in range(rounds):
            seen = together.turn(appliance.Fake(), seen)
        return seen


@pytest.fixture
def paired(client, box):
    """In step with the other box: it has what this one has."""
    box.pair = sample()
    ledger.keep()
    together.turn(appliance.Fake(), Seen(paired=True))
    Together.objects.create(pair=PAIR, draft=str(drafts.stamp()))
    return box


def schedule(scheduler: Scheduler, user: str = "admin") -> None:
    """Edit the draft."""
    row = draft.service(draft.current().services[0].id)
    draft.write_service(dataclasses.replace(row.wish, scheduler=scheduler), row, user)


def scheduler() -> Scheduler:
    return draft.current().services[0].scheduler


def back_to(texts: dict[str, str], base: str, counter: int | None = None) -> None:
    """This box as it was then."""
    assert drafts.take(drafts.read(texts[DRAFT]), drafts.stamp())
    if counter is not None:
        Draft.objects.update(counter=counter)
    Together.objects.update(draft=base)


# --- the draft -------------------------------------------------------------------------------------------------


def digest(letter: str, counter: int) -> Stamp:
    return Stamp(counter, letter * 64)


@pytest.mark.parametrize(
    ("mine", "theirs", "agreed", "desk", "wanted"),
    [
        (digest("a", 5), digest("a", 9), digest("b", 3), True, "same"),
        (digest("a", 5), digest("b", 6), digest("a", 5), True, "take"),
        (digest("a", 7), digest("b", 6), digest("a", 5), False, "take"),  # edited, and back again
        (digest("b", 6), digest("a", 5), digest("a", 5), False, "wait"),
        (digest("b", 6), digest("c", 4), digest("a", 5), False, "wait"),  # the other one went back to an older state
        (digest("a", 5), digest("c", 4), digest("a", 5), False, "wait"),
        (digest("b", 6), digest("c", 7), digest("a", 5), True, "set aside theirs"),
        (digest("b", 6), digest("c", 7), digest("a", 5), False, "set aside mine"),
        (digest("b", 6), digest("c", 7), None, False, "set aside mine"),
        (digest("b", 6), digest("c", 7), None, True, "wait"),
    ],
)
def test_what_becomes_of_two_drafts(mine, theirs, agreed, desk, wanted):
    assert step(mine, theirs, agreed, desk) == wanted


def test_the_draft_goes_along_with_who_changed_what_when(paired):
    before = Other(paired)
    schedule(Scheduler.LC, "alice")
    after, row = Other(paired), draft.service(draft.current().services[0].id)
    back_to(before.texts, before.stamps[DRAFT], Stamp.read(before.stamps[DRAFT]).counter)
    assert scheduler() != Scheduler.LC
    assert after.is_heard().trouble == ""
    now = draft.service(row.pk)
    assert scheduler() == Scheduler.LC
    assert (now.version, now.changed_by, now.changed_at) == (row.version, "alice", row.changed_at)
    assert drafts.stamp() == Stamp.read(after.stamps[DRAFT]) == Stamp.read(Together.objects.get().draft)


@pytest.mark.parametrize("leads", [True, False])
def test_an_older_draft_replaces_nothing(paired, leads):
    before = Other(paired)
    schedule(Scheduler.LC)
    assert before.is_heard(leads).trouble == ""
    assert scheduler() == Scheduler.LC and not SetAside.objects.exists()
    assert drafts.stamp().counter > Stamp.read(before.stamps[DRAFT]).counter


@pytest.mark.parametrize("leads", [True, False])
def test_of_two_drafts_that_of_the_desk_stays_and_the_other_one_is_kept_and_told(client, paired, leads):
    base = Other(paired)
    schedule(Scheduler.LC)
    theirs = Other(paired)
    back_to(base.texts, base.stamps[DRAFT])
    schedule(Scheduler.SH)
    seen = theirs.is_heard(leads, rounds=3)
    assert scheduler() == (Scheduler.LC if leads else Scheduler.SH)
    kept = SetAside.objects.get()
    assert kept.hostname == ("lb1" if leads else "lb2")
    assert f'"{"sh" if leads else "lc"}"' in kept.snapshot
    assert "edited on both boxes" in seen.trouble
    assert [one["code"] for one in paired.faults] == ["pair-along"]
    SetAside.objects.update(snapshot="")  # nobody wants it any more
    assert theirs.is_heard(leads).trouble == "" and SetAside.objects.count() == 1


def test_two_boxes_do_not_give_way_to_each_other_while_the_lead_moves(paired):
    base = Other(paired)
    schedule(Scheduler.LC)
    theirs = Other(paired)
    back_to(base.texts, base.stamps[DRAFT])
    schedule(Scheduler.SH)
    theirs.is_heard(leads=True, rounds=1)  # it has not been seen as the desk before
    assert scheduler() == Scheduler.SH and not SetAside.objects.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "draft: is not JSON"),
        ("[]", "draft: must be an object"),
        ('{"schema": 1}', "is missing"),
        ("data", "services"),
        ("number", "number is none"),
        ("time", "time is none"),
        ("schema", "draft.schema: must be"),
    ],
)
def test_a_draft_that_cannot_be_read_changes_nothing_and_is_told(paired, text, words):
    before = drafts.stamp()
    other = Other(paired)
    data = json.loads(other.texts[DRAFT])
    wrong = {
        "data": lambda: data["services"][0].update(data='{"services": 1}'),
        "number": lambda: data["services"][0].update(key="x"),
        "time": lambda: data["services"][0].update(changed_at="yesterday"),
        "schema": lambda: data.update(schema=99),
    }
    if text in wrong:
        wrong[text]()
        text = json.dumps(data)
    other.texts[DRAFT] = text
    other.stamps[DRAFT] = str(Stamp(before.counter + 1, "f" * 64))
    seen = other.is_heard()
    assert seen.trouble.startswith("Users, draft and history of the pair do not go along: ") and words in seen.trouble
    assert drafts.stamp() == before


# --- users and tokens ----------------------------------------------------------------------------------------


def user(name: str, password: str, active: bool = True) -> UserEntry:
    return UserEntry(name, password, active)


def token(digest: str, of: str) -> TokenEntry:
    return TokenEntry(digest, digest, of, ["read"], "2026-01-01T00:00:00+00:00", None, [])


OLD = Ledger(5, (user("ann", "1"), user("bob", "2")), (token("t", "ann"), token("u", "bob")))


def test_what_was_changed_on_either_box_counts_on_both():
    one = OLD.after(6, (user("ann", "1b"), *OLD.users[1:]), OLD.tokens[1:])  # a password and its token
    other = OLD.after(9, (OLD.users[0], user("eve", "3")), OLD.tokens[:1])  # bob is gone, eve has come
    found = along.together(one, other)
    assert found == along.together(other, one)
    assert [(one.name, one.password) for one in found.users] == [("ann", "1b"), ("eve", "3")]
    assert found.tokens == () and found.number == 10
    assert {secret_digest(text) for text in ("1", "2", "t", "u")} <= found.retired
    assert along.together(found, other) == along.together(one, found) == found


def test_of_two_new_passwords_the_one_of_the_newer_ledger_stays():
    one = OLD.after(6, (user("ann", "1b"), *OLD.users[1:]), ())
    other = OLD.after(7, (user("ann", "1c"), *OLD.users[1:]), ())
    found = along.together(one, other)
    assert found == along.together(other, one) and found.users[0].password == "1c"
    assert secret_digest("1b") in found.retired


def test_a_password_that_was_changed_there_is_changed_here(paired, admin, client):
    mine = tokens.make(admin, "mine", ["read"])
    before = Other(paired)
    credentials.set_password(admin, "rope and tide")
    after = Other(paired)
    assert ledger.become(lambda _: ledger.read(before.texts[USERS])) and ApiToken.objects.count() == 1
    after.is_heard()
    admin.refresh_from_db()
    assert admin.check_password("rope and tide") and tokens.owner(mine) is None
    assert ledger.load().users == ledger.read(after.texts[USERS]).users
    before.is_heard()  # an older document changes nothing any more
    admin.refresh_from_db()
    assert admin.check_password("rope and tide") and not ApiToken.objects.exists()


def test_what_is_the_same_is_not_written_again(paired, monkeypatch):
    """In whatever order the other box has it."""
    get_user_model().objects.create_user("aaron", password=PASSWORD)
    other, before = Other(paired), ledger.load()
    turned = dataclasses.replace(before, users=before.users[::-1])
    assert len(turned.users) == 2
    other.texts[USERS], other.stamps[USERS] = turned.to_json(), "1:turned"
    monkeypatch.setattr(ledger, "_write", lambda found: pytest.fail("it is the same"))
    assert other.is_heard().trouble == ""


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"number": 1, "users": [], "tokens": [], "retired": []}']
    + [
        json.dumps({"number": 9, "users": [one], "tokens": [], "retired": []})
        for one in ({"name": "x\n", "password": "y", "active": True}, {"name": "x", "password": 3, "active": True})
    ],
)
def test_users_that_nobody_could_have_entered_change_nothing(paired, admin, text):
    other = Other(paired)
    other.stamps[USERS], other.texts[USERS] = "99:x", text
    seen = other.is_heard()
    assert "do not go along" in seen.trouble
    admin.refresh_from_db()
    assert admin.check_password(PASSWORD)


def test_what_could_not_be_taken_is_told_once_and_asked_for_again_after_a_while(paired, admin, monkeypatch, caplog):
    """The other box puts a document there each time that it is wanted, and it is gone once it was fetched."""
    now = [1000.0]
    monkeypatch.setattr(together.time, "monotonic", lambda: now[0])
    other = Other(paired)
    good, other.stamps[USERS] = other.texts[USERS], "99:x"
    other.texts[USERS] = "{"
    seen = other.is_heard(rounds=1)
    told = seen.trouble
    assert "do not go along" in told
    del other.texts[USERS]
    brought, bring = [], appliance.Fake.pair_bring

    def counted(fake, name):
        brought.append(name)
        return bring(fake, name)

    monkeypatch.setattr(appliance.Fake, "pair_bring", counted)
    for _ in range(3):
        assert together.turn(appliance.Fake(), seen).trouble == told
    assert brought == []
    now[0] += together.AGAIN
    assert together.turn(appliance.Fake(), seen).trouble == told and brought == [USERS]  # not put there yet
    other.texts[USERS] = good
    assert together.turn(appliance.Fake(), seen).trouble == ""
    assert [one.message for one in caplog.records if one.name == together.log.name] == [
        f"the pair: {told}",
        "the pair: all goes along again",
    ]


def test_another_document_is_taken_at_once(paired, admin):
    other = Other(paired)
    good, stamp = other.texts[USERS], other.stamps[USERS]
    other.stamps[USERS], other.texts[USERS] = "99:x", "{"
    seen = other.is_heard(rounds=1)
    assert "do not go along" in seen.trouble
    other.stamps[USERS], other.texts[USERS] = stamp, good
    assert together.turn(appliance.Fake(), seen).trouble == ""


def test_two_boxes_that_nobody_has_set_up_have_nothing_to_tell(paired):
    get_user_model().objects.all().delete()
    other = Other(paired)
    other.texts[USERS] = Ledger().to_json()
    other.stamps[USERS] = "0:x"
    assert other.is_heard().trouble == ""


# --- who comes into a pair --------------------------------------------------------------------------------------


def test_who_comes_into_a_pair_has_the_users_and_the_draft_of_the_other_box(paired, admin):
    schedule(Scheduler.LC)
    other = Other(paired)
    back_to(other.texts, "")
    schedule(Scheduler.SH)
    Together.objects.all().delete()
    get_user_model().objects.create_user("of this box", password=PASSWORD)
    credentials.set_password(admin, "another one")
    assert other.is_heard(leads=False, rounds=1).trouble.startswith("The draft was edited on both boxes")
    assert [one.username for one in get_user_model().objects.all()] == ["admin"]
    assert get_user_model().objects.get().check_password(PASSWORD)
    assert scheduler() == Scheduler.LC and SetAside.objects.get().hostname == "lb1"
    assert Together.objects.get().pair == PAIR


def test_who_comes_into_a_pair_is_in_it_once_it_has_users_and_draft(paired):
    other = Other(paired)
    Together.objects.all().delete()
    schedule(Scheduler.SH)
    document = other.texts.pop(DRAFT)
    other.is_heard(leads=False)
    assert Together.objects.get().pair == ""
    other.texts[DRAFT] = document
    other.is_heard(leads=False)
    assert Together.objects.get().pair == PAIR


def test_what_is_told_ends_with_its_reason_also_where_the_other_box_is_away(paired):
    kept = SetAside.objects.create(digest="a" * 64, hostname="lb2", snapshot="{}")
    seen = Other(paired).is_heard()
    assert "edited on both boxes" in seen.trouble
    paired.pair.theirs = None
    assert "edited on both boxes" in together.turn(appliance.Fake(), seen).trouble
    SetAside.objects.filter(pk=kept.pk).update(snapshot="")
    assert together.turn(appliance.Fake(), seen).trouble == ""


def test_in_step_nothing_is_written(paired, django_assert_max_num_queries):
    other = Other(paired)
    seen = other.is_heard()
    with django_assert_max_num_queries(60) as queries:
        together.turn(appliance.Fake(), seen)
    wrote = [one["sql"] for one in queries.captured_queries if one["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]
    assert wrote == []


def test_of_two_that_are_new_the_first_box_gives_and_takes_nothing(paired, admin):
    other = Other(paired)
    other.stamps["pair"] = ""
    Together.objects.all().delete()
    credentials.set_password(admin, "another one")
    schedule(Scheduler.SH)
    assert other.is_heard().trouble == ""
    admin.refresh_from_db()
    assert admin.check_password("another one") and scheduler() == Scheduler.SH
    assert Together.objects.get().pair == PAIR


def test_with_another_version_nothing_goes_along_and_it_is_told(paired):
    other = Other(paired)
    schedule(Scheduler.SH)
    other.stamps |= {"format": f"{FORMAT}0", USERS: "99:x"}
    seen = other.is_heard()
    assert "another version of the software" in seen.trouble and scheduler() == Scheduler.SH
    assert paired.faults[0]["message"] == seen.trouble
    other.stamps["format"] = FORMAT
    other.stamps[USERS] = f"{ledger.load().number}:{copies.stamp(other.texts[USERS])}"
    assert other.is_heard().trouble == "" and paired.faults == []


def test_a_box_that_is_alone_says_nothing_of_itself(client, box, monkeypatch):
    monkeypatch.setattr(together, "_stamps", lambda: pytest.fail("nobody asked"))
    assert together.turn(appliance.Fake(), Seen()) == Seen()


# --- the history ----------------------------------------------------------------------------------------------


def test_the_history_goes_along_with_its_comments(paired):
    numbers = list(Revision.objects.values_list("number", flat=True))
    newest = Revision.objects.first()
    Revision.objects.filter(pk=newest.pk).update(user="alice", comment="why it was")
    other = Other(paired)
    Revision.objects.exclude(pk=newest.pk).delete()
    Revision.objects.filter(pk=newest.pk).update(user="pair", comment="as lb2 runs it")
    other.is_heard(rounds=1 + len(numbers))
    assert list(Revision.objects.values_list("number", flat=True)) == numbers
    newest.refresh_from_db()
    assert (newest.user, newest.comment) == ("alice", "why it was")
    assert Revision.objects.last().snapshot == json.loads(other.texts["revision 1"])["snapshot"]


def test_a_comment_that_was_corrected_later_stays(paired):
    from changes import revisions

    newest = Revision.objects.first()
    revisions.correct(newest, "older", "alice")
    other = Other(paired)
    revisions.correct(newest, "newer", "bob")
    newer = Other(paired)
    other.is_heard()
    assert Revision.objects.first().comment == "newer"
    revisions.correct(newest, "oldest", "eve")
    Revision.objects.filter(pk=newest.pk).update(corrected_at="2020-01-01T00:00:00+00:00")
    newer.is_heard()
    assert (Revision.objects.first().comment, Revision.objects.first().corrected_by) == ("newer", "bob")


@pytest.mark.parametrize("said", ["{", "[]", '{"revisions": [], "forgotten": [3]}'])
def test_a_history_that_cannot_be_read_is_refused(db, said):
    with pytest.raises(SnapshotError, match="history"):
        copies.take(said)
