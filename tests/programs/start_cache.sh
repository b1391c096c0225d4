#!/bin/bash
# The sites found in libc are cached in a file of the user. The file is used only if it is intact
# and not writable by other users: start_cache.sh LISSOM PROGRAM JSON_OF
set -eu
lissom=$1 program=$2 json_of=$3 folder=$HOME/.cache/lissom
path=$(ldd "$program" | sed -n 's/.*libc\.so\.6 => \([^ ]*\) .*/\1/p')
libc=$folder/sites-$(readelf -n "$path" | sed -n 's/ *Build ID: //p')

# Print how many system calls of libc are redirected.
patched() {
    "$lissom" run --stats=json --stats-file="$HOME/report" -- "$program" thrd >/dev/null
    python3 "$json_of" "$HOME/report" \
        'sum(o.patched for p in d.processes for o in p.objects if o.name == "libc.so.6")'
}
check() {
    echo "$1: $([ "$(patched)" = "$first" ] && echo same), $(stat -c %a "$libc")"
}

first=$(patched)
[ "$first" -gt 100 ]
check 'read again'
sum=$(cksum <"$libc")
printf '\1' | dd of="$libc" bs=1 seek=5000 conv=notrunc status=none
check 'damaged'
[ "$sum" = "$(cksum <"$libc")" ] && echo mended
truncate -s 3000 "$libc"
check 'cut off'
[ "$sum" = "$(cksum <"$libc")" ] && echo mended
chmod 666 "$libc"
check 'writable by others'
rm "$libc"
ln -s /dev/zero "$libc"
check 'a link'
chmod 777 "$folder"
rm -f "$libc"
patched >/dev/null
[ -e "$libc" ] || echo 'not in a folder of all'
