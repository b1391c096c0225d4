# The archive on Debian 11: unpacked into /usr/local and into a user's ~/.local, used, removed.
. "$(dirname "$0")/lib.sh"
debian bullseye python3 python3-venv xz-utils
mkdir "$machine/package"
cp "$dist/$archive.tar.gz" "$machine/package/"
files >"$work/files.before"
show "tar -xzf /package/$archive.tar.gz -C /usr/local --strip-components=1 && lissom --version && lissom doctor | tail -n 2"
decent "$work/files.before"
show "lissom run -- sh -c 'echo \$LD_PRELOAD'" | tee "$work/preload"
grep -qx '/usr/local/lib/lissom/liblissom-[0-9a-f]*\.so' "$work/preload" || fail "not the library beside it"
programs lissom sort
rm -r "$machine/tmp/t"
show "cd /usr/local && tar -tzf /package/$archive.tar.gz | sed -n 's|^[^/]*/\(.\)|\1|p' | sort -r | while read f; do [ -d \"\$f\" ] && rmdir --ignore-fail-on-non-empty \"./\$f\" || rm -f \"./\$f\"; done; command -v lissom || echo it is gone"
# Debian's own empty folders below /usr/local may stay or go with the archive's: only files of the
# archive must not remain.
files >"$work/files.now"
! LC_ALL=C comm -13 "$work/files.before" "$work/files.now" | grep . || fail "files were left behind (see above)"

mkdir -m 755 "$machine/home/user"
chown 1000:1000 "$machine/home/user"
inside_home=/home/user
show "setpriv --reuid 1000 --regid 1000 --clear-groups sh -c '
    mkdir -p ~/.local && tar -xzf /package/$archive.tar.gz -C ~/.local --strip-components=1
    ~/.local/bin/lissom run -- sh -c \"echo \\\$LD_PRELOAD\"'" | tee "$work/preload"
grep -qx '/home/user/\.local/lib/lissom/liblissom-[0-9a-f]*\.so' "$work/preload" || fail "not the library beside it, for a user"
