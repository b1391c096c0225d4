"""Whether `lissom bench` measured what workloads/known.c does.

    bench_known.py REPORT EXPRESSION...

Prints for each Python expression whether it holds; if not, with the figures that it used. These
are functions:

    figure(NAME)             median of the process figure NAME over the native runs
    least(NAME)              its least
    counted(SCENARIO, NAME)  what was counted in that column; None if it cannot be counted here
    counter(SCENARIO, NAME)  the runtime's counter, summed over the column's processes
"""

import json
import sys
from statistics import median

with open(sys.argv[1]) as file:
    cells = {cell["scenario"]: cell for cell in json.load(file)["groups"][0]["cells"]}
used = []


def recorded(function):
    def call(*arguments):
        value = function(*arguments)
        used.append(f"{' '.join(arguments)} = {value}")
        return value

    return call


def native(name):
    return [sample["process"][name] for sample in cells["native"]["samples"]]


@recorded
def figure(name):
    return median(native(name))


@recorded
def least(name):
    return min(native(name))


@recorded
def counted(scenario, name):
    return cells[scenario]["counted"][name]


@recorded
def counter(scenario, name):
    return sum(p["counters"][name] for p in cells[scenario]["statistics"]["processes"])


for expression in sys.argv[2:]:
    used.clear()
    holds = eval(expression)
    print("holds" if holds else f"does not hold: {expression}: {', '.join(used)}")
