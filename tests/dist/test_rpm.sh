# The package for Fedora and its relatives: its list of files, unpacked and used on Debian 11 (whose
# glibc is the oldest that lissom supports), then installed and removed there by this machine's rpm.
. "$(dirname "$0")/lib.sh"
for tool in rpm rpm2cpio cpio; do
    command -v "$tool" >/dev/null || skip "no $tool: scripts/need.sh dist dist_test installs it"
done
echo "# rpm -qp --requires $rpm"
rpm -qp --requires "$dist/$rpm" | tee "$work/requires"
[ "$(grep -v '^rpmlib(\|^/bin/sh$' "$work/requires")" = "glibc >= 2.28" ] || fail "requirements"
echo "# rpm -qlp $rpm"
rpm -qlp "$dist/$rpm" | tee "$work/list"
for path in /usr/bin/lissom /usr/lib/systemd/system/lissom-{manager,metrics}.service \
    /usr/share/man/man1/lissom-run.1.gz /usr/share/licenses/lissom/GPL-2.0; do
    grep -qx "$path" "$work/list" || fail "there is no $path"
done

debian bullseye python3 python3-venv xz-utils
# It belongs to the package filesystem of Fedora.
mkdir "$machine/usr/share/licenses"
files >"$work/files.before"
echo "# rpm2cpio $rpm | cpio -idm"
rpm2cpio "$dist/$rpm" | cpio -idm --quiet -D "$machine"
decent "$work/files.before"
show 'lissom --version && lissom doctor | tail -n 2'
show "lissom run -- sh -c 'echo \$LD_PRELOAD'" | tee "$work/preload"
grep -qx '/usr/lib/lissom/liblissom-[0-9a-f]*\.so' "$work/preload" ||
    fail "not the library of the package"
programs lissom sort xz python3
rm -r "$machine/tmp/t"
files | LC_ALL=C comm -13 "$work/files.before" - >"$work/unpacked"

# Without these files again. The machine has no database of rpm.
rm -r "$machine"
debian bullseye python3 python3-venv xz-utils
mkdir "$machine/usr/share/licenses"
echo "# rpm --install $rpm"
# Scripts run on the machine, by chroot.
rpm --root "$machine" --dbpath /var/cache/rpm --install --nodeps "$dist/$rpm"
rpm --root "$machine" --dbpath /var/cache/rpm --verify --nodeps lissom
files | LC_ALL=C comm -13 "$work/files.before" - | diff "$work/unpacked" - ||
    fail "other files than unpacked ones"
show 'lissom run -- true && echo it runs'
echo "# rpm --erase lissom"
rpm --root "$machine" --dbpath /var/cache/rpm --erase lissom
same_files "$work/files.before"
