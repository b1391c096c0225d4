"""`promtool check metrics`, on what the manager answers. It knows the older text format only, in which the name of a counter ends in _total in its TYPE line, too; what
it says of OpenMetrics as it is, is shown, and what it says of the same metrics in the older format has to be what is known."""

import re
import subprocess

# Scripts use this name, as in `lissom run --stats`. OpenMetrics recommends seconds, but allows
# other units.
KNOWN = {"lissom_program_threshold_ns metric names should not contain abbreviated units"}


def older(text):
    """As Prometheus's libraries write it for who does not ask for OpenMetrics."""
    counters = set(re.findall(r"^# TYPE (\S+) counter$", text, re.M))
    lines = []
    for line in text.splitlines():
        described = re.match(r"# (HELP|TYPE) (\S+) (.*)", line)
        if described:
            name = described[2] + ("_total" if described[2] in counters else "")
            lines.append(f"# {described[1]} {name} {described[3]}")
        elif not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines) + "\n"


def findings(text):
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    return sorted(set((done.stdout + done.stderr).splitlines()))


def look(text, check):
    said = findings(text)
    kinds = {}
    for line in said:
        name, _, finding = line.partition(" ")
        kinds.setdefault(finding, []).append(name)
    for finding, names in sorted(kinds.items()):
        print(f"promtool, of OpenMetrics: {finding}: {len(names)}, such as {names[0]}")
    said = findings(older(text))
    for line in said:
        print(f"promtool, of the older text format: {line}")
    check(
        set(said) <= KNOWN,
        "promtool finds nothing else in the same metrics as the older text format",
    )
