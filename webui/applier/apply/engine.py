"""Runs the steps of a job in order; puts everything back in reverse order when one fails."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence

from applier.apply.job import Job, Step, Unsafe
from applier.apply.runs import TITLES, RunRecord, StepRecord
from applier.wire.shapes import StepState

log = logging.getLogger("applier")

UNDO_ATTEMPTS = 2
UNDO_PAUSE = 1.0  # seconds


class Engine:
    def __init__(self, job: Job, record: RunRecord, now: Callable[[], float] = time.monotonic) -> None:
        self.job = job
        self.record = record
        self._now = now
        self._begun: list[Step] = []
        job.seconds = self.seconds

    def seconds(self) -> float:
        """What the steps took; waiting to be confirmed does not count."""
        return sum(step.seconds for step in self.record.steps)

    def forward(self, steps: Sequence[Step]) -> str | None:
        """Do all that are due. None, or the sentence about the first that failed.

        A lenient job goes on after a failure, unless that would leave the box open.
        """
        failure = None
        for step in [one for one in steps if self._concerns(one)]:
            said = self._do(step)
            failure = failure or said
            if said and (not self.job.lenient or any(isinstance(t, Unsafe) for t in self.job.troubles)):
                break
        if failure is not None:
            self.leave()
        return failure

    def _concerns(self, step: Step) -> bool:
        if step.concerns(self.job):
            return True
        self.record.leave_out(step.name)
        return False

    def leave(self) -> None:
        """The steps that were not begun will not be."""
        for step in self.record.steps:
            if step.state == "waiting":
                step.state = "skipped"

    def back(self) -> list[str]:
        """Undo what was begun, the last one first; the sentences about what could not be undone."""
        failures = []
        for step in reversed(self._begun):
            entry = self.record[step.name]
            error = self._undo(step)
            if error is None:
                self._note(entry, "failed" if entry.state == "failed" else "undone", entry.detail)
                log.info("step %s undone", step.name)
            else:
                failures.append(f"“{TITLES[step.name]}” could not be undone: {_words(error)}.")
                self._note(entry, entry.state, f"{entry.detail} Not undone: {_words(error)}.".strip())
        return failures

    def _undo(self, step: Step) -> Exception | None:
        """What came between in the end; None: it is undone."""
        for attempt in range(1, UNDO_ATTEMPTS + 1):
            try:
                step.undo(self.job)
            # A mistake in one step's undo must not keep the others from being undone.
            except Exception as error:  # noqa: BLE001
                log.error("step %s was not undone, attempt %d: %s", step.name, attempt, error)
                last = error
                self.job.host.sleep(UNDO_PAUSE)
            else:
                return None
        return last

    def _do(self, step: Step) -> str | None:
        entry = self.record[step.name]
        begin = self._now()
        entry.state = "running"
        troubles = len(self.job.troubles)
        try:
            if not step.due(self.job):
                entry.seconds = self._now() - begin
                self._note(entry, "skipped", "nothing to change")
                return None
            self._begun.append(step)
            detail = step.do(self.job)
            if len(self.job.troubles) > troubles:
                raise self.job.troubles[troubles]
        # Whatever it was: the box must come back to a state that is known.
        except Exception as error:  # noqa: BLE001
            if self.job.lenient and error not in self.job.troubles:
                self.job.troubles.append(error)
            entry.seconds = self._now() - begin
            self._note(entry, "failed", f"{_words(error)}.")
            log.error("step %s failed: %s", step.name, error)
            return f"“{TITLES[step.name]}” failed: {_words(error)}."
        entry.seconds = self._now() - begin
        self._note(entry, "done", detail)
        log.info("step %s: %s (%.2f s)", step.name, detail, entry.seconds)
        return None

    def _note(self, entry: StepRecord, state: StepState, detail: str) -> None:
        entry.state, entry.detail = state, detail
        if self.job.number is not None:
            # A full disk must not keep a configuration from being put back.
            with contextlib.suppress(OSError):
                self.job.generations.log_step(self.job.number, entry.to_data())


def _words(error: Exception) -> str:
    return str(error).rstrip(". ") or type(error).__name__
