"""Evaluates Python expressions about JSON documents, and prints what comes out, a line each:
`field.py FILE EXPRESSION...`. FILE `-` stands for standard input.

Names that an expression can use: `d`, the first document; `documents`, all of them; `p`, the first
program of `d`; `by_pid`, the programs of `d` by process number.
"""

import json
import sys


def read_documents(text):
    """The documents of a text, one behind the other."""
    decoder, documents = json.JSONDecoder(), []
    while text := text.lstrip():
        document, length = decoder.raw_decode(text)
        documents.append(document)
        text = text[length:]
    return documents


def main():
    path, expressions = sys.argv[1], sys.argv[2:]
    with sys.stdin if path == "-" else open(path) as file:
        documents = read_documents(file.read())
    d = documents[0]
    programs = d.get("programs") or []
    names = {
        "d": d,
        "documents": documents,
        "p": programs[0] if programs else None,
        "by_pid": {p["pid"]: p for p in programs},
    }
    for expression in expressions:
        print(eval(expression, names))


main()
