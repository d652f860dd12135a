"""The text of the console, made from a State. Plain lines that also read well in a log file."""

from __future__ import annotations

from console.dialogue import NORMAL, RED
from console.state import State
from lbconfig.model.addresses import web_page

RULE = "-" * 60
STICK = "  This box runs from a USB stick; 'Install on a disk' puts it on the internal disk."


def screen(state: State, menu: list[str]) -> str:
    lines = ["", RULE, f"Fairlead {state.version}", ""]
    pages = [web_page(address, state.port) for address in state.addresses] or ["no address yet"]
    lines += labelled("Web page", pages)
    lines += labelled("", [f"answers on {' and '.join(state.only)} only"]) if state.only else []
    if state.setup_code:
        lines += labelled("Set-up code", [f"{state.setup_code}   (the web page asks for it)"])
    lines += labelled("Configuration", [state.configuration])
    lines += labelled("Pair", [state.pair]) if state.pair else []
    lines += labelled("New changes", [state.pending]) if state.pending else []
    lines += labelled("Runs from", [state.place]) if state.place else []
    lines += labelled("Last update", [state.update]) if state.update else []
    lines += [f"{RED}  FAULT  {fault}{NORMAL}" for fault in state.faults]
    lines += ["", STICK] if state.on_a_stick else []
    lines += ["", *(f"  {number}  {title}" for number, title in enumerate(menu, 1)), RULE, ""]
    return "\n".join(lines)


def labelled(label: str, values: list[str]) -> list[str]:
    labels = [label] + [""] * (len(values) - 1)
    return [f"  {name:15}{value}" for name, value in zip(labels, values, strict=True)]


def details(state: State) -> str:
    """The answer to "show the status"."""
    return "\n".join([*(f"  {line}" for line in state.services or ("There is no virtual service.",)), ""])
