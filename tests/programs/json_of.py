"""Prints parts of a JSON document, one a line.

    json_of.py FILE EXPRESSION...
    json_of.py FILE --each LOOP EXPRESSION...

The Python expressions see the document as `d` and its members as attributes; d["values"] where a
dictionary has a method of that name. With --each, a line has the values of all expressions, and
there is one line for each turn of the loop: --each 'g in d.groups for c in g.cells'.
A FILE of - is standard input.
"""

import argparse
import json
from statistics import median


class Object(dict):
    __getattr__ = dict.__getitem__


parser = argparse.ArgumentParser()
parser.add_argument("file", type=argparse.FileType(), metavar="FILE")
parser.add_argument("--each", metavar="LOOP")
parser.add_argument("expressions", nargs="+", metavar="EXPRESSION")
options = parser.parse_intermixed_args()

names = {"d": json.load(options.file, object_hook=Object), "median": median}
if options.each:
    # A single evaluation: every expression sees the variables of the loop.
    values = ", ".join(f"({e})" for e in options.expressions)
    for line in eval(f"[({values},) for {options.each}]", names):
        print(*line)
else:
    for expression in options.expressions:
        print(eval(f"({expression})", names))
