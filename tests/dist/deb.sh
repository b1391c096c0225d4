# Test the package on a bare Debian. Sourced. $machine must be one, with python3 and xz-utils; it is
# left as it was.
files >"$work/files.before"
mkdir "$machine/package"
cp "$dist/$deb" "$machine/package/"
show 'cat /etc/debian_version; ldd --version | head -n 1'
show "apt-get install -qq -o Dpkg::Use-Pty=0 ./package/$deb 2>&1 | grep -v '^debconf:'"
show 'dpkg --verify lissom && dpkg -L lissom'
decent "$work/files.before"

show 'lissom --version'
show 'lissom doctor'
show "lissom run -- sh -c 'echo \$LD_PRELOAD'" | tee "$work/preload"
grep -qx '/usr/lib/lissom/liblissom-[0-9a-f]*\.so' "$work/preload" || fail "not the library of the package"
show "setpriv --reuid 65534 --regid 65534 --clear-groups lissom run -- sh -c 'id -u; echo \$LD_PRELOAD'" | tee "$work/preload"
grep -qx '/usr/lib/lissom/liblissom-[0-9a-f]*\.so' "$work/preload" || fail "not the library of the package, for nobody"
programs lissom bash sort xz python3

show "apt-get install --reinstall -qq ./package/$deb >/dev/null 2>&1 && lissom run -- true && echo the same again"
if inside /bin/sh -c 'command -v systemctl' >/dev/null; then
    show 'systemctl enable lissom-manager; systemctl is-enabled lissom-manager'
fi
show 'apt-get remove -qq -o Dpkg::Use-Pty=0 lissom 2>&1 | grep -v "^debconf:"; command -v lissom || echo it is gone'
show 'apt-get purge -qq -o Dpkg::Use-Pty=0 lissom; dpkg -l lissom 2>&1 | tail -n 1'
rm -r "$machine/tmp/t"
same_files "$work/files.before"
