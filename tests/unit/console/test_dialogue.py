"""Questions, answers, and work between them, on one terminal."""

import os
import time

from console import dialogue, screen


def test_questions_answers_and_a_default(person, talk):
    person.terminal.begin(talk(), True)
    assert person.look() == "Your name? "
    person.type("kim")
    assert person.look() == "Hello kim.\nColour? [red] "
    person.type("")
    assert person.look() == f"red.\n{dialogue.NOTHING_DONE}"
    assert person.terminal.dialogue is None


def test_nothing_that_is_shown_acts_on_the_terminal(person):
    """A comment, a name or an error may hold anything: only the console's own red and its new lines go through."""
    person.terminal.show(f"{screen.RED}FAULT{screen.NORMAL} Büro\033[2J\033]0;x\a\u202e\x9b\n")
    assert person.look() == f"{screen.RED}FAULT{screen.NORMAL} Büro?[2J?]0;x????\n".replace("????", "???")


def test_an_empty_line_ends_it_where_there_is_no_default(person, talk):
    person.terminal.begin(talk(), True)
    person.type("")
    assert person.look() == f"Your name? {dialogue.NOTHING_DONE}"
    assert person.terminal.dialogue is None and not person.terminal.asked


def test_a_disk_that_breaks_does_not_take_the_console_away(person):
    def lines():
        yield "looking\n"
        raise OSError(5, "Input/output error")

    person.terminal.begin(lines(), True)
    person.work()
    assert person.look() == "looking\n\nThat failed: [Errno 5] Input/output error\n"
    assert person.terminal.dialogue is None


def test_what_was_typed_while_it_worked_is_no_answer(person, monkeypatch):
    monkeypatch.setattr(dialogue, "LONG", 0.01)

    def lines():
        yield "working\n"
        time.sleep(0.02)
        answer = yield dialogue.Ask("Go on? ")
        yield f"{answer}!\n"

    person.terminal.begin(lines(), True)
    os.write(person.end, b"yes\n")
    person.work()
    os.write(person.end, b"no\n")
    assert person.arrived() == "no"


def test_what_was_typed_while_it_waited_is_no_answer(person):
    def lines():
        yield dialogue.Pause(0)
        yield dialogue.Ask("Go on? ")

    person.terminal.begin(lines(), True)
    os.write(person.end, b"yes\n")
    person.work()
    os.write(person.end, b"no\n")
    assert person.arrived() == "no"


def test_what_was_typed_after_the_last_word_is_not_forgotten(person):
    """The dialogue's end is noticed a moment later, on a busy box seconds later."""

    def lines():
        yield dialogue.Pause(0)
        yield "done\n"

    person.terminal.begin(lines(), True)
    person.terminal.go_on()
    assert person.look() == "done\n"
    os.write(person.end, b"1\n")
    person.work()
    assert person.terminal.dialogue is None
    assert person.arrived() == "1"


def test_the_state_of_the_box_pushes_no_question_away(person, talk):
    person.terminal.begin(talk(), True)
    person.terminal.show_screen("A FAULT\n")
    assert person.look() == "Your name? A FAULT\nYour name? "
