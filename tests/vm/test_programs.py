"""Every program of the image knows the options with which the product calls it; of both images, by the same list."""

import pytest
from tests.lab import called
from tests.lab.fixtures import thorough

pytestmark = pytest.mark.timeout(1200)


@thorough
def test_every_program_knows_the_options_that_the_product_calls_it_with(director):
    director.succeed(["mkdir", called.WORK])
    wrong = []
    for program, lines in called.TRIES.items():
        for line in lines:
            done = director.execute(line)
            if done.exit:
                wrong.append(
                    f"{program}: {line}\n  exit code {done.exit}: {(done.output + done.errors).strip()[-300:]}"
                )
    assert not wrong, "\n".join(wrong)
