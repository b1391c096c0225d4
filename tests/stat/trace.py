"""Checks a trace in Chrome's JSON format, and evaluates Python expressions about it, as field.py
does: `trace.py FILE EXPRESSION...`. Prints each fault; the first one too many ends the check.

Names that an expression can use: `d`, the document; `spans`, entries with a duration; `of(name)`,
the spans of threads of this name; `arrows`, pairs of names: the waking thread and the woken one;
`other`, the facts about the recording.
"""

import json
import sys

NUMBER = (int, float)
# Phase: fields that it needs besides those of all.
PHASES = {
    "X": {"dur": NUMBER},
    "i": {"s": str},
    "C": {"args": dict},
    "M": {"args": dict},
    "s": {"id": int},
    "f": {"id": int, "bp": str},
}
ALL = {"ph": str, "ts": NUMBER, "pid": int, "tid": int, "name": str}


def faults(events):
    ends = {}
    for entry in events:
        wanted = ALL | PHASES.get(entry.get("ph"), {"a known phase": str})
        for field, kind in wanted.items():
            if not isinstance(entry.get(field), kind):
                yield f"{field} is missing or wrong: {entry}"
        if entry["ts"] < 0 or entry.get("dur", 0) < 0:
            yield f"a time is negative: {entry}"
        if entry["ph"] in "sf":
            ends.setdefault(entry["id"], []).append(entry)
    for pair in ends.values():
        if [entry["ph"] for entry in pair] != ["s", "f"] or pair[0]["ts"] > pair[1]["ts"]:
            yield f"an arrow is no pair: {pair}"
    # Spans of one thread follow each other; times are rounded to ns.
    last = {}
    for span in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
        if span["ts"] < last.get(span["tid"], 0) - 0.01:
            yield f"spans overlap: {span}"
        last[span["tid"]] = span["ts"] + span["dur"]


def main():
    path, expressions = sys.argv[1], sys.argv[2:]
    with open(path) as file:
        d = json.load(file)
    events = d["traceEvents"]
    for number, fault in enumerate(faults(events)):
        print(fault)
        if number == 10:
            break
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    ends = {(e["id"], e["ph"]): threads.get(e["tid"]) for e in events if e["ph"] in "sf"}
    names = {
        "d": d,
        "other": d["otherData"],
        "threads": threads,
        "spans": spans,
        "of": lambda name: [s for s in spans if threads.get(s["tid"]) == name],
        "arrows": {(ends[id, "s"], ends[id, "f"]) for id, ph in ends if ph == "s"},
    }
    for expression in expressions:
        print(eval(expression, names))


main()
