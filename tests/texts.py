"""What pages say, where tests of several files look for it: reword the template, and then the line here.

What Python says is imported from the product instead; what a rule of lbconfig says is made by the rule itself.
"""

from lbconfig.validate import fields
from lbconfig.validate.fields import NO_INTERFACE as NO_INTERFACE

twice = fields.given_twice


def within(low: int, high: int, value: int) -> str:
    """What is said of a number that is out of its range."""
    return _said(fields.in_range(value, low, high))


def no_address(text: str) -> str:
    """What is said of a text that is no IP address."""
    return _said(fields.ip_address(text))


def no_interface_name(text: str) -> str:
    """What is said of a text that no interface can be called by."""
    return _said(fields.interface_name(text))


def no_service_name(text: str) -> str:
    """What is said of a text that no service, server or rule can be called by."""
    return _said(fields.service_name(text))


def _said(sentence: str | None) -> str:
    assert sentence, "the rule takes this value"
    return sentence


def on_screen(sentence: str) -> str:
    """As a page shows it beside a field."""
    return sentence[:1].upper() + sentence[1:]


# Set-up and log-in
SET_UP = "Set up this box"
SET_UP_AND_LOG_IN = "Set up and log in"
LOG_IN_HERE = "Log in here"
LOG_IN_BUTTON = "text=Log in >> nth=-1"
LOG_OUT = "Log out"
RESTORE_A_FILE = "restore a backup file"

# Every page, and the overview
SKIP = "Skip to the content"
ADD_SERVICE = "Add a virtual service"
FIRST_SERVICE = "Add your first virtual service"
REMOVAL_WAITS = "removal not applied"
STILL_BALANCES = "keeps balancing"

# Forms
SAVE = "Save to the draft"
SAVE_BUTTON = f"button:text('{SAVE}')"
SAVED = "Saved to the draft"
ADD_SERVER = "Add a real server"
TRY_IT = "Try it now"
OTHER_TUNNELS = "Other tunnels"
FIX = "Fix this"

# Review and apply
REVIEW = "Review changes"
NOT_YET = "This draft cannot be applied yet"
NOT_APPLIED = "not applied"
APPLY_BUTTON = "button:text('Apply')"
APPLYING = "Applying…"
APPLIED = "The changes are live"
UNDONE = "was undone"
BACK = "Back to the overview"

# A change that waits to be confirmed
ASKS = "This must be confirmed"
MAY_WARN = "Your browser may warn about the new certificate"
KEEP_IT = "Everything runs. Keep it?"
KEEP_BUTTON = "Keep these changes"
OLD_CONNECTION = "existing connection"
KEPT = "The changes are kept"
REACHED = "You can reach the box as it is now"
WENT_BACK = "The box went back to what it ran before"
UNREACHABLE = "No answer at this address any more"
SHOWS_OTHER = "The box shows another certificate now"

# History, import, backup files
RESTORE = "Restore into the draft"
REPLACE = "Replace the draft"
OPEN_FILE = "Open the file"
NO_CHANGE = "Nothing would change"
RESTORED = "The backup file is restored"
NOT_SHOWN = "Passwords and private keys are not shown."

# Updates, hardware, capacity, drift
LOOK_FOR_BUNDLES = "Look for bundles"
WAITS_FOR_RESTART = "waits for a restart"
NOTHING_WRITTEN = "Nothing was written"
HEALTHY = "Nothing is wrong with this hardware"
START_COUNTING = "Start counting"
NEVER_MEASURED = "Never measured"
DIFFERS = "does not run what it should"
REPAIRED = "Repaired"

# A pair
HOLDS = "admin has held this box since"
