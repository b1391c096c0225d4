#!/usr/bin/env python3
"""Makes a kernel module lie about its types, or say nothing of them:

    btf_edit.py MODULE.ko OUT.ko STRUCT MEMBER offset=BYTES     the member is elsewhere
    btf_edit.py MODULE.ko OUT.ko STRUCT MEMBER like=OTHER       the member has the type that OTHER has
    btf_edit.py MODULE.ko OUT.ko STRUCT MEMBER name             the member has another name
    btf_edit.py MODULE.ko OUT.ko STRUCT none name               the struct has another name
    btf_edit.py MODULE.ko OUT.ko none none gone                 there is no BTF

--base VMLINUX: the ELF file or raw BTF that the module's is based on. A signature is removed: it would be wrong.
"""

import struct
import sys

SIGNED = b"~Module signature appended~\n"
EXTRA = {1: 4, 3: 12, 14: 4, 17: 4}
EXTRA_EACH = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}


def sections(data):
    """name -> (offset, size), and where the name stands"""
    (at,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
    strings = headers[names][4]
    found = {}
    for header in headers:
        end = data.index(b"\0", strings + header[0])
        found[data[strings + header[0] : end].decode()] = (
            header[4],
            header[5],
            strings + header[0],
        )
    return found


class Btf:
    def __init__(self, data, at):
        _, _, _, header, type_off, type_len, str_off, str_len = struct.unpack_from(
            "<HBBIIIII", data, at
        )
        self.data, self.types, self.end = (
            data,
            at + header + type_off,
            at + header + type_off + type_len,
        )
        self.strings, self.strings_size = at + header + str_off, str_len

    def structs(self):
        """(offset of the type, its kind, its members' offsets)"""
        at = self.types
        while at < self.end:
            _, info, _ = struct.unpack_from("<III", self.data, at)
            kind, count = info >> 24 & 31, info & 0xFFFF
            if kind == 4:
                yield at, info >> 31, [at + 12 + 12 * i for i in range(count)]
            at += 12 + EXTRA.get(kind, 0) + EXTRA_EACH.get(kind, 0) * count


def main():
    arguments = sys.argv[1:]
    base = None
    if arguments[0] == "--base":
        base = bytearray(open(arguments[1], "rb").read())
        arguments = arguments[2:]
    source, out, type_name, member_name, what = arguments
    data = bytearray(open(source, "rb").read())
    if data.endswith(SIGNED):
        (length,) = struct.unpack_from(">I", data, len(data) - len(SIGNED) - 4)
        del data[len(data) - len(SIGNED) - 12 - length :]
    at, _, name_at = sections(data)[".BTF"]
    if what == "gone":
        data[name_at : name_at + 4] = b".BTX"
        open(out, "wb").write(data)
        return
    btf = Btf(data, at)
    base_btf = Btf(base, sections(base)[".BTF"][0] if base[:4] == b"\x7fELF" else 0)

    def name_of(at):
        (offset,) = struct.unpack_from("<I", data, at)
        of = base_btf
        if offset >= base_btf.strings_size:
            of, offset = btf, offset - base_btf.strings_size
        end = of.data.index(b"\0", of.strings + offset)
        return of.data[of.strings + offset : end].decode()

    def rename(at):
        # Use the empty string, which every string table contains.
        struct.pack_into("<I", data, at, 0)

    changed = 0
    for at, _, members in btf.structs():
        if name_of(at) != type_name:
            continue
        if member_name == "none":
            rename(at)
            changed += 1
            continue
        by_name = {name_of(m): m for m in members}
        member = by_name[member_name]
        key, _, value = what.partition("=")
        if key == "name":
            rename(member)
        elif key == "like":
            data[member + 4 : member + 8] = data[by_name[value] + 4 : by_name[value] + 8]
        elif key == "offset":
            struct.pack_into("<I", data, member + 8, int(value) * 8)
        else:
            sys.exit(f"unknown change {what}")
        changed += 1
    if not changed:
        sys.exit(f"no struct {type_name}")
    open(out, "wb").write(data)


main()
