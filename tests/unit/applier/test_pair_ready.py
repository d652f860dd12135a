"""When a box of a pair may lead after its start."""

import pytest

from applier.pair.ready import CHECKS, MUTE, SILENT, Seen, missing

ALONE = Seen(loaded=True, checked=True, daemons=True, waited=SILENT, silent=SILENT, told=False, behind=False)
BESIDE = ALONE._replace(silent=0.2, told=True)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (ALONE, ""),
        (BESIDE, ""),
        (ALONE._replace(loaded=False), "the confirmed configuration does not run yet"),
        (ALONE._replace(daemons=False), "connections are not synchronised yet"),
        (ALONE._replace(checked=False), "its servers have not been checked yet"),
        (ALONE._replace(checked=False, waited=CHECKS), ""),
        (ALONE._replace(waited=1.0, silent=1.0), "the other box may be about to speak"),
        (BESIDE._replace(waited=0.0), ""),
        (BESIDE._replace(told=False), "the other box has not said what it runs"),
        (BESIDE._replace(told=False, waited=MUTE), ""),
        (BESIDE._replace(behind=True), "the other box has a newer configuration"),
        (BESIDE._replace(behind=True, silent=SILENT), ""),
        (BESIDE._replace(loaded=False, waited=900.0), "the confirmed configuration does not run yet"),
    ],
)
def test_a_box_waits_for_what_it_lacks_and_for_nobody_who_is_silent(seen, why):
    assert missing(seen) == why
