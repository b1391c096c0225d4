"""What Grafana makes of a dashboard's file: its variables put in place of their names, legends, and what it would object to."""

import re

COLUMNS = 24
# Grafana's own panels and units (@grafana/data, valueFormats) that a dashboard for administrators
# may need.
PANELS = {"stat", "timeseries", "gauge", "bargauge", "table", "row", "text"}
UNITS = {
    "short",
    "none",
    "percent",
    "percentunit",
    "s",
    "ms",
    "ns",
    "cps",
    "ops",
    "bytes",
    "string",
}
OWN_UNITS = ("suffix:", "prefix:", "si:")
BUILT_IN = {"__rate_interval", "__interval", "__range", "__from", "__to"}
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?::\w+)?\}|\[\[(\w+)\]\]")


def variables(text):
    return {a or b or c for a, b, c in VARIABLE.findall(text)}


def escaped(value):
    """A chosen value, in a regular expression within a string of PromQL."""
    value = value.replace("\\", "\\\\\\\\").replace('"', '\\"')
    return re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", value)


def chosen(values):
    values = [escaped(v) for v in values]
    return values[0] if len(values) == 1 else "(" + "|".join(values) + ")"


def put_in(text, values):
    def value(match):
        return values[match[1] or match[2] or match[3]]

    return VARIABLE.sub(value, text)


def intervals(seconds, points, scrape):
    """$__interval and $__rate_interval of a panel so many points wide."""
    interval = max(round(seconds / points), scrape)
    return {
        "__interval": f"{interval}s",
        "__rate_interval": f"{max(interval + scrape, 4 * scrape)}s",
    }


def legend(template, labels):
    """Post: KeyError names a label that the series has not."""
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda m: labels[m[1]], template)


def overlap(a, b):
    return (
        a["x"] < b["x"] + b["w"]
        and b["x"] < a["x"] + a["w"]
        and a["y"] < b["y"] + b["h"]
        and b["y"] < a["y"] + a["h"]
    )


def wrong_table(panel, where):
    """A table's queries are of one moment; `merge` makes a row of each set of labels, and a column of each query."""
    names = {f"Value #{t.get('refId')}" for t in panel["targets"]}
    if any(t.get("format") != "table" or not t.get("instant") for t in panel["targets"]):
        yield f"{where}: a query that is not of one moment, as a table"
    for transformation in panel.get("transformations", []):
        renamed = transformation["options"].get("renameByName")
        if renamed is None:
            continue
        for name in sorted(names - renamed.keys()):
            yield f"{where}: {name} has no name"
        for name in sorted(n for n in renamed if n.startswith("Value #") and n not in names):
            yield f"{where}: {name} is of no query"


def wrong_panel(panel, sources):
    where = f"panel {panel.get('id')} {panel.get('title')!r}"
    if not panel.get("title"):
        yield f"{where} has no title"
    if panel.get("type") not in PANELS:
        yield f"{where}: {panel.get('type')!r} is no panel of Grafana's"
    at = panel.get("gridPos", {})
    if not {"x", "y", "w", "h"} <= at.keys():
        yield f"{where} has no place"
    elif at["x"] < 0 or at["y"] < 0 or at["w"] < 1 or at["h"] < 1 or at["x"] + at["w"] > COLUMNS:
        yield f"{where} is not within {COLUMNS} columns"
    unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "short")
    if unit not in UNITS and not unit.startswith(OWN_UNITS):
        yield f"{where}: {unit!r} is no unit of Grafana's"
    if panel.get("type") == "table":
        yield from wrong_table(panel, where)
    refs = [t.get("refId") for t in panel.get("targets", [])]
    if panel.get("type") not in ("row", "text") and not refs:
        yield f"{where} has no query"
    if len(set(refs)) != len(refs) or None in refs:
        yield f"{where}: its queries need a refId each, of their own"
    for thing in [panel, *panel.get("targets", [])]:
        source = thing.get("datasource", {})
        if source.get("type") != "prometheus" or not variables(str(source.get("uid"))) & sources:
            yield f"{where}: its data source is not one that is chosen when the file is imported"
    for target in panel.get("targets", []):
        if not target.get("expr"):
            yield f"{where}: {target.get('refId')} is empty"


def wrong(dashboard):
    """What is wrong with the file, as lines."""
    if not isinstance(dashboard.get("schemaVersion"), int):
        yield "no schemaVersion"
    if not re.fullmatch(r"[\w-]{1,40}", dashboard.get("uid") or ""):
        yield "no uid"
    if not dashboard.get("title"):
        yield "no title"
    # A dashboard's id belongs to the Grafana that exported it; another Grafana would take it for
    # one of its own.
    if dashboard.get("id") is not None:
        yield "it has an id"
    known = {v["name"]: v for v in dashboard["templating"]["list"]}
    sources = {
        name
        for name, v in known.items()
        if v["type"] == "datasource" and v["query"] == "prometheus"
    }
    panels = dashboard["panels"]
    ids = [p.get("id") for p in panels]
    if len(set(ids)) != len(ids) or not all(isinstance(i, int) and i > 0 for i in ids):
        yield f"panels need numbers of their own: {ids}"
    for panel in panels:
        yield from wrong_panel(panel, sources)
    for i, a in enumerate(panels):
        for b in panels[:i]:
            if overlap(a["gridPos"], b["gridPos"]):
                yield f"panels {b['id']} and {a['id']} overlap"
    used = variables(str(panels)) | {
        n for v in known.values() for n in variables(str(v | {"current": None}))
    }
    for name in sorted(used - known.keys() - BUILT_IN):
        yield f"${name} is used, and is no variable"
    for name in sorted(known.keys() - used):
        yield f"${name} is a variable that nothing uses"
