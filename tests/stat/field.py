"""Of what `lissom stat --json` prints: `field.py FILE EXPRESSION` evaluates a Python expression, in which p is the first program and d everything."""

import json
import sys

with open(sys.argv[1]) as file:
    d = json.load(file)
p = d["programs"][0] if d["programs"] else None
print(eval(sys.argv[2]))
