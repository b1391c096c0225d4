#!/usr/bin/env python3
"""Wraps comments and Markdown at column 100, which no formatter of ours does well: wrap.py FILE...

- A comment behind code that ends beyond column 100 moves to a line of its own above that code.
- A paragraph or list item with a line beyond column 100 is filled again from that line on.
- The dashes of a banner (`--- title ---`) end at column 100.

Everything else stays as it is: code, tables, indented blocks, fenced blocks, short lines.
"""

import re
import sys
from pathlib import Path

WIDTH = 100
# A shorter line ends where its author wanted it to end.
FULL = 85
TAB = 8

SLASHES = {".c", ".h", ".S", ".cpp", ".cc", ".rs", ".go"}
HASHES = {".py", ".sh", ".txt"}
ITEM = re.compile(r"(?:[-*]|\d+[.)]) +")
BEGINS_BLOCK = re.compile(r"[-+*|>=]+|#+|\d+[.)]")
# Comments that tools read, and lines that are not prose.
FIXED = re.compile(
    r"(?:SPDX|clang-format|shellcheck|ruff|noqa|go:|export |[ +]build|(?:build|compiler)[@:]"
    r"|#|\||```|@|<|=|---| {3,})"
)
RAW_STRING = re.compile(r'b?r(#*)"')
CHARACTER = re.compile(r"'(?:\\.[^']*|[^\\'])'")


def width(line):
    return len(line.expandtabs(TAB))


def comments(text, language):
    """The places (start, end) of the comments of a C, Rust or Go text."""
    found, at, length = [], 0, len(text)
    while at < length:
        two = text[at : at + 2]
        if two == "//":
            end = text.find("\n", at)
            end = length if end < 0 else end
            found.append((at, end))
            at = end
        elif two == "/*":
            end = text.find("*/", at + 2)
            end = length if end < 0 else end + 2
            found.append((at, end))
            at = end
        elif text[at] == '"':
            at += 1
            while at < length and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
            at += 1
        elif text[at] == "`" and language == ".go":
            at = text.find("`", at + 1) + 1 or length
        elif text[at] == "'":
            match = CHARACTER.match(text, at)
            at = match.end() if match else at + 1
        elif (
            language == ".rs" and (raw := RAW_STRING.match(text, at)) and not word_before(text, at)
        ):
            end = text.find('"' + raw.group(1), raw.end())
            at = length if end < 0 else end + 1 + len(raw.group(1))
        else:
            at += 1
    return found


def word_before(text, at):
    return at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")


def cut_banner(line):
    """`/* --- title ----- */` with as many dashes as fit."""
    match = re.fullmatch(r"(\s*(?:/\*|//|#) (?:-+ .*? )?)(-{4,})( ?\*/)?", line)
    if not match or width(line) <= WIDTH:
        return line
    end = match.group(3) or ""
    return match.group(1) + "-" * (WIDTH - width(match.group(1)) - len(end)) + end


def moved_up(lines, spans):
    """Lines with each comment that does not fit behind its code on a line of its own above it.
    spans: row -> (column, last row) of the comment that begins behind code in that row."""
    result, row = [], 0
    while row < len(lines):
        line = lines[row]
        column, last = spans.get(row, (None, row))
        rows = lines[row : last + 1]
        # In macros the formatter needs room for a backslash.
        room = WIDTH - 2 if line.startswith("#") else WIDTH
        if (
            column is None
            or all(width(r) <= room for r in rows)
            or not may_move(result, line, column)
        ):
            result.append(line)
            row += 1
            continue
        indent = line[: len(line) - len(line.lstrip())]
        mark = "//" if line[column:].startswith("//") else " *"
        result.append(indent + line[column:])
        for more in rows[1:]:
            more = more.strip()
            more = more if more.startswith(("//", "* ")) else f"* {more}"
            result.append(indent + (more if mark == "//" else f" {more}"))
        result.append(line[:column].rstrip())
        row = last + 1
    return result


def may_move(before, line, column):
    code = line[:column].strip()
    if code.startswith(("}", "else", "case ", "default", "\\")) or line.endswith("\\"):
        return False
    if before and before[-1].endswith("\\"):
        return False
    above = before[-1].rstrip() if before else ""
    return (
        not above
        or above.endswith((";", "{", "}", ",", ":", "*/"))
        or bool(re.match(r"\s*(#|//|/\*)", above))
    )


def find_trailing(text, spans):
    """row -> (column, last row) of comments behind code, with line comments that continue them."""
    starts, at = [0], 0
    while (at := text.find("\n", at) + 1) > 0:
        starts.append(at)
    rows, found, last = [], {}, None
    row = 0
    for start, end in spans:
        while row + 1 < len(starts) and starts[row + 1] <= start:
            row += 1
        column = start - starts[row]
        rest = text[end : text.find("\n", end) if "\n" in text[end:] else len(text)]
        is_behind = bool(text[starts[row] : start].strip())
        if rest.strip():
            last = None
        elif is_behind:
            found[row] = (column, row + text.count("\n", start, end))
            last = row
        elif (
            last is not None
            and text.startswith("//", start)
            and found[last][1] == row - 1
            and abs(column - found[last][0]) <= 1
            and found[last][0] > 12
            and text.startswith("//", starts[last] + found[last][0])
        ):
            found[last] = (found[last][0], row)
        else:
            last = None
        rows.append((row, column))
    return found


def fill(words, first, rest):
    """Lines of `words`, the first one behind `first`, the others behind `rest`."""
    lines, line = [], first + words[0]
    for i, word in enumerate(words[1:], 1):
        needed = len(word)
        # A line must not begin like a list, a title or a table.
        if i + 1 < len(words) and BEGINS_BLOCK.fullmatch(words[i + 1]):
            needed += 1 + len(words[i + 1])
        if width(line) + 1 + needed > WIDTH and not BEGINS_BLOCK.fullmatch(word):
            lines.append(line)
            line = rest + word
        else:
            line += f" {word}"
    return lines + [line]


def begins_anew(line, following):
    """A contract, or a sentence after a line without an end."""
    if re.match(r"(Pre|Post|In|Out|Returns?)\b", following):
        return True
    return line[-1:] not in ".,;:" and bool(re.match(r"[A-Z][a-z]", following))


def wrap_run(rows):
    """rows: (prefix, text) of successive lines of comment. Returns lines."""
    result, fenced, at = [], False, 0
    while at < len(rows):
        prefix, text = rows[at]
        if text.startswith("```"):
            fenced = not fenced
        if fenced or not text.strip() or FIXED.match(text) or width(prefix + text) <= WIDTH:
            result.append((prefix + text).rstrip())
            at += 1
            continue
        # The paragraph continues in full lines with the same indentation.
        own = text[: len(text) - len(text.lstrip())]
        item = ITEM.match(text.lstrip())
        hang = own + " " * (item.end() if item else 0)
        if not item and result:
            hang = own
        end = at + 1
        while end < len(rows) and width(rows[end - 1][0] + rows[end - 1][1]) > FULL:
            following = rows[end][1]
            if not following.strip() or ITEM.match(following.lstrip()):
                break
            if begins_anew(rows[end - 1][1], following.lstrip()):
                break
            indent = following[: len(following) - len(following.lstrip())]
            if indent != hang or FIXED.match(following.lstrip()):
                break
            end += 1
        words = " ".join(t for _, t in rows[at:end]).split()
        after = rows[at + 1][0] if end > at + 1 else next_prefix(prefix)
        if item:
            words = words[len(item.group().split()) :]
            first = prefix + own + item.group()
        else:
            first = prefix + own
        result += fill(words, first, after + hang)
        at = end
    return result


def next_prefix(prefix):
    return prefix.replace("/*", " *", 1) if prefix.lstrip().startswith("/*") else prefix


LINE = re.compile(r"(\s*(?://[/!]?|\#) ?)(.*)")


def wrap_lines(lines, mark, is_comment):
    """Fills runs of whole-line comments that begin with `mark`."""
    result, run = [], []
    for row, line in enumerate(lines):
        match = LINE.fullmatch(line) if is_comment(row, line) else None
        if match and (not run or run[-1][0].rstrip() == match.group(1).rstrip()):
            run.append((match.group(1), match.group(2)))
            continue
        result += wrap_run(run)
        run = []
        if match:
            run = [(match.group(1), match.group(2))]
        else:
            result.append(line)
    return result + wrap_run(run)


def wrap_block(lines):
    """Fills one `/* ... */` whose lines are whole lines."""
    if lines[0].strip() == "/*" or all(width(line) <= WIDTH for line in lines):
        keep_first = lines[0].strip() == "/*"
        if all(width(line) <= WIDTH for line in lines):
            return lines
    else:
        keep_first = False
    closing = lines[-1].strip() == "*/"
    body = lines[:-1] if closing else lines[:-1] + [lines[-1].rstrip()[:-2].rstrip()]
    rows = []
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    for number, line in enumerate(body):
        match = re.fullmatch(r"(\s*/\*+ ?)(.*)" if number == 0 else r"(\s*\* ?)(.*)", line)
        if not match and number:
            match = re.fullmatch(r"(\s*)(.*)", line)
            rows.append((f"{indent} * ", match.group(2)))
            continue
        if not match:
            return lines
        prefix, text = match.groups()
        rows.append((prefix if text or prefix.endswith(" ") else prefix, text))
    if keep_first:
        result = [lines[0]] + wrap_run(rows[1:])
    else:
        result = wrap_run(rows)
    if closing:
        return result + [lines[-1]]
    if width(result[-1]) + 3 <= WIDTH:
        result[-1] += " */"
    else:
        # Move the last word to the line with the end of the comment.
        head, _, word = result[-1].rpartition(" ")
        result[-1:] = [head, f"{indent} * {word} */"]
    return result


def wrap_blocks(text, language):
    lines = text.split("\n")
    at = 0
    starts = []
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    blocks, row = {}, 0
    for start, end in comments(text, language):
        if not text.startswith("/*", start):
            continue
        while row + 1 < len(starts) and starts[row + 1] <= start:
            row += 1
        last = row + text.count("\n", start, end)
        tail = text[end : starts[last] + len(lines[last])]
        if not text[starts[row] : start].strip() and not tail.strip():
            blocks[row] = last
    result, row = [], 0
    while row < len(lines):
        last = blocks.get(row, row)
        result += wrap_block(lines[row : last + 1]) if row in blocks else [lines[row]]
        row = last + 1
    return "\n".join(result)


def wrap_slashes(text, language):
    text = "\n".join(cut_banner(line) for line in text.split("\n"))
    lines = moved_up(text.split("\n"), find_trailing(text, comments(text, language)))
    text = wrap_blocks("\n".join(lines), language)
    inside = set()
    row = at = 0
    for start, _ in comments(text, language):
        row += text.count("\n", at, start)
        at = start
        if text.startswith("//", start):
            inside.add(row)
    return "\n".join(
        wrap_lines(text.split("\n"), "//", lambda r, s: r in inside and s.lstrip().startswith("//"))
    )


def wrap_hashes(text, language):
    """Here documents and strings of several lines are left alone."""
    quoted, end = set(), None
    for row, line in enumerate(text.split("\n")):
        if end:
            quoted.add(row)
            if (line.strip() == end) if language == ".sh" else (end in line):
                end = None
        elif language == ".sh" and (match := re.search(r"<<-?\s*[\"'\\]?(\w+)", line)):
            end = match.group(1)
        elif language == ".py" and (line.count('"""') % 2 or line.count("'''") % 2):
            end = '"""' if line.count('"""') % 2 else "'''"
    return "\n".join(
        wrap_lines(
            [cut_banner(s) for s in text.split("\n")],
            "#",
            lambda r, s: r not in quoted and s.lstrip().startswith("# "),
        )
    )


def wrap_markdown(text):
    """Paragraphs and list items, but no tables, titles, code or HTML."""
    return "\n".join(wrap_run([("", line) for line in text.split("\n")]))


def main():
    for name in sys.argv[1:]:
        path = Path(name)
        text = path.read_text()
        if path.suffix in SLASHES:
            wrapped = wrap_slashes(text, path.suffix)
        elif path.suffix in HASHES:
            wrapped = wrap_hashes(text, path.suffix)
        elif path.suffix == ".md":
            wrapped = wrap_markdown(text)
        else:
            continue
        if wrapped != text:
            path.write_text(wrapped)


if __name__ == "__main__":
    main()
