"""The draft's choices about the hardware. Empty fields leave it to the box."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.shortcuts import render

from applier.wire.client import ApplierDown, ApplierRefused, connect
from draft import boxes, editing
from draft import store as draft
from draft.boxes import Place
from draft.pages import Page, check, finish
from lbconfig.hardware.settings import AT_START, TABLE, Tunable
from lbconfig.model.names import OF_A_CARD, POWER
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import CardChoice, Power, SettingChoice, Snapshot, Tuning
from web.kept_input import keeps_input

WHOLE = "Give a whole number, or nothing."
MAX_VALUE = 60  # characters of a setting


@dataclass(frozen=True)
class Known:
    """What the machine tells for the form; nothing where it does not answer."""

    cards: dict[str, dict]  # as in applier.wire.shapes_machine
    standards: dict[str, str]  # of the settings, for this machine


class TuningForm(forms.Form):
    known = Known({}, {})  # of the class, as another admin's page is made from the class (draft.pages.merged)

    power = forms.ChoiceField(
        label="Clock and sleep of the CPUs",
        choices=[(str(value), words.long.capitalize()) for value, words in POWER.items()],
        widget=forms.RadioSelect,
    )
    spread = forms.BooleanField(
        label="Spread the work over the CPUs",
        required=False,
        help_text="One queue for each core, its interrupt at home there, and RPS where a card has too few queues. "
        "Without it everything stays as the kernel has it.",
    )

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields  # `sentences` are for the template
        fields["power"].sentences = {str(value): words.help for value, words in POWER.items()}
        for name, card in self.known.cards.items():
            for part, label in OF_A_CARD.items():
                self.fields[f"{name} {part}"] = _card_field(label, _now(card, part))
        for row in TABLE:
            self.fields[row.key] = _setting_field(row, self.known.standards.get(row.key, ""))

    @property
    def cards(self) -> list[dict]:
        """By card: its name, its driver, and its fields."""
        return [
            {
                "name": name,
                "driver": card.get("driver", ""),
                "fields": [self[f"{name} {part}"] for part in OF_A_CARD],
            }
            for name, card in self.known.cards.items()
        ]

    @property
    def kernel(self) -> list:
        return [self[row.key] for row in TABLE]

    @property
    def cards_chosen(self) -> bool:
        """Whether anything stands in that part, which is folded away otherwise."""
        return any(_filled(field) for card in self.cards for field in card["fields"])

    @property
    def kernel_chosen(self) -> bool:
        return any(_filled(field) for field in self.kernel)

    def wish(self) -> Tuning:
        data = self.cleaned_data
        cards = (
            CardChoice(name, **{part: data[f"{name} {part}"] or 0 for part in OF_A_CARD}) for name in self.known.cards
        )
        return Tuning(
            settings=tuple(SettingChoice(row.key, data[row.key]) for row in TABLE if data[row.key]),
            cards=tuple(card for card in cards if card != CardChoice(card.name)),
            spread=data["spread"],
            power=Power(data["power"]),
        )


def _filled(field: forms.BoundField) -> bool:
    return bool(field.value() or field.errors or getattr(field.field, "note", ""))


@keeps_input
def edit(request):
    place = boxes.shown(request)
    known = _known(place.of(draft.current()).tuning, place.box in (None, boxes.own(request)))
    return editing.edit(
        request,
        lambda data=None: _page(known, place, data),
        lambda page, snapshot: _check(page, snapshot, place),
        editing.part(place.part("tuning")),
        _show,
        then="hardware",
    )


def _known(tuning: Tuning, here: bool) -> Known:
    """The cards of the machine, and those that are chosen about. `here`: it is about this box."""
    try:
        found = connect().hardware()
    except (ApplierDown, ApplierRefused):
        return Known({one.name: {} for one in tuning.cards}, {})
    else:
        cards = {card["name"]: card for card in found["machine"]["cards"]} if here else {}
        standards = {one["key"]: one["standard"] for one in found["settings"]}
    return Known({**{one.name: {} for one in tuning.cards}, **cards}, standards)


def _page(known: Known, place: Place, data=None) -> Page:
    row = draft.part(place.part("tuning"))
    wish = place.of(draft.current()).tuning
    kind = type("TuningForm", (TuningForm,), {"known": known})
    form = kind(data) if data is not None else kind(initial=_initial(wish))
    return finish(Page(row, form), data)


def _initial(wish: Tuning) -> dict:
    found: dict[str, object] = {"power": str(wish.power), "spread": wish.spread}
    found |= {f"{card.name} {part}": getattr(card, part) or "" for card in wish.cards for part in OF_A_CARD}
    return found | {one.key: one.value for one in wish.settings}


def _check(page: Page, snapshot: Snapshot, place: Place) -> Snapshot | None:
    if not page.form.is_valid():
        return None
    tuning = page.form.wish()

    def beside(page: Page, problem: Problem, message: str) -> bool:
        name = _field_of(place.near(problem).path, tuning)
        if name not in page.form.fields:
            return False
        page.form.add_error(name, message)
        return True

    return check(page, snapshot, place.with_tuning(snapshot, tuning), f"{place.root}tuning.", beside)


def _field_of(path: str, tuning: Tuning) -> str:
    """ "tuning.settings[3].value" -> the name of the field that it came from."""
    part, _, rest = path.removeprefix("tuning.").partition("[")
    index, _, field = rest.partition("].")
    if not index.isdecimal():
        return part
    rows: Iterable = {"settings": tuning.settings, "cards": tuning.cards}.get(part, ())
    one = list(rows)[int(index)]
    return one.key if isinstance(one, SettingChoice) else f"{one.name} {field}"


def _card_field(label: str, now: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=0,
        max_value=10**9,
        error_messages={"invalid": WHOLE},
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "placeholder": "as planned"}),
        help_text=now,
    )


def _now(card: dict, part: str) -> str:
    if not card:
        return "This card is not in the machine now."
    if part == "queues":
        return f"{card['queues']['rx']} now, {card['queues']['most_rx']} at most."
    way = part.partition("_")[0]
    now, most = card["ring"][way], card["ring"][f"most_{way}"]
    return f"{now} now, {most} at most." if most else "The driver does not tell."


def _setting_field(row: Tunable, standard: str) -> forms.CharField:
    later = f" {AT_START}" if row.at_start else ""
    return forms.CharField(
        label=row.key.removeprefix("module/").replace("/", "."),
        required=False,
        max_length=MAX_VALUE,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": standard}),
        help_text=f"{row.reason}{later} From {row.lowest} to {row.highest}.",
    )


def _show(request, page: Page, status: int = 200):
    context = {"page": page, "form": page.form, **boxes.switch(request, boxes.shown(request))}
    return render(request, "system/tuning.html", context, status=status)
