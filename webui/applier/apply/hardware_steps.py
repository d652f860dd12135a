"""The steps that tune the hardware: before its cards are up, and once they have their interrupts."""

from __future__ import annotations

from applier.apply.job import Job, Step
from applier.hardware import tune as hardware
from applier.host.host import HostError
from lbconfig.model.snapshot import Tuning
from lbconfig.target import Target


class TuneHardware(Step):
    name = "hardware"
    why = "Before cards are up: one whose queues change under traffic loses packets."

    def due(self, job: Job) -> bool:
        """At the start and in a repair; in an apply only for other choices, so that no other apply looks at cards."""
        return job.lenient or wish(job) != _wish_before(job)

    def do(self, job: Job) -> str:
        done = hardware.tune(job.host, job.paths, wish(job))
        job.saved.tuned[:0] = done.undo
        job.saved.cards = done.cards
        if done.refused_choices and not job.lenient:
            raise HostError("the kernel refuses what you chose", None, "; ".join(done.refused_choices))
        refused = f"; {len(done.refused)} refused" if done.refused else ""
        return f"{len(done.changed)} changed{refused}"

    def undo(self, job: Job) -> None:
        if not job.saved.tuned:
            return
        hardware.undo(job.host, job.saved.tuned)
        if job.before is not None:  # a card that was given other queues has interrupts that nobody has placed
            hardware.tune(job.host, job.paths, _wish_before(job))
        job.saved.tuned = []


class PlaceInterrupts(TuneHardware):
    name = "interrupts"
    why = "Right after the cards are up: many have no interrupts before."

    def due(self, job: Job) -> bool:
        """Also where an apply takes an interface into use: only now its card asks for interrupts."""
        return super().due(job) or bool(_used(job.new) - (_used(job.before) if job.before else set()))


def _used(target: Target) -> set[str]:
    """Names of the interfaces that are up."""
    interfaces = [one for one in target.own.network.interfaces if one.on]
    return {name for one in interfaces for name in (one.name, *one.members)}


def wish(job: Job) -> Tuning:
    return job.new.own.tuning


def _wish_before(job: Job) -> Tuning:
    return job.before.own.tuning if job.before else Tuning()
