"""The list of what the product calls is whole: the images are asked for nothing less (tests/vm/test_programs.py)."""

from tests.lab import called


def tried() -> dict[str, set[str]]:
    """The options of each program that some line of the list needs."""
    found: dict[str, set[str]] = {program: set() for program in called.KNOWN}
    for lines in called.TRIES.values():
        for line in lines:
            for program, options in called.in_shell(line):
                found[program] |= options
    return found


def test_every_program_and_option_that_the_product_calls_is_tried():
    lines = tried()
    missing = []
    for path, program, options in called.calls():
        place = path.relative_to(called.TOP)
        if program not in called.KNOWN:
            missing.append(f"{place}: {program}")
        elif program in called.TRIES:
            missing += [f"{place}: {program} {option}" for option in sorted(options - lines[program])]
    assert not missing, "add them to tests/lab/called.py:\n" + "\n".join(missing)


def test_calls_are_found_in_modules_and_scripts():
    module = 'WRITE = ["nft", "-j", "-t", "list"]\nhost.command([f"/bin/{x}"])\nrun(host, [*MKE2FS, "x"])\n'
    assert list(called.in_python(module)) == [("nft", {"-j", "-t"})]
    assert list(called.in_python('ARGV = ("rauc", f"--conf={CONF}", "-5", "x")')) == [("rauc", {"--conf", "-5"})]
    script = "# nft -x\n[ -e /x ] || exec nice -n 10 \\\n\tnginx -e stderr\nwhile ip -json rule; do :; done\n"
    assert list(called.in_shell(script)) == [("nice", {"-n"}), ("nginx", {"-e"}), ("ip", {"-json"})]
    assert list(called.in_python('run(host, ["new-program", "-q"])')) == [("new-program", {"-q"})]
