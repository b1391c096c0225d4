# Check the files of `make dist` from outside.
. "$(dirname "$0")/lib.sh"
cd "$dist" || exit
sha256sum --quiet -c SHA256SUMS
for f in "$deb" "$rpm" "$wheel" "$archive.tar.gz" "$image"; do
    [ -e "$f" ] || fail "$f is not there"
done

echo "The archive: one folder, of root's, which nobody else can write"
tar -tvzf "$archive.tar.gz" | tee "$work/list"
# A link has no mode of its own; it must refer to a file beside it.
! awk '$1 ~ /^l/ { if ($2 != "0/0" || $NF ~ /\//) print; next } $2 != "0/0" || $1 ~ /^.....w/ || $1 ~ /^........w/ || $1 ~ /[sSt]/ || $6 !~ /^lissom-/' "$work/list" | grep . || fail "modes, owners or names"
tar -xzf "$archive.tar.gz" -C "$work"
tree=$work/$archive
[ "$("$tree/bin/lissom" --version)" = "lissom $version" ] || fail "its version"

echo "The program needs no loader and no library"
! readelf -lW "$tree/bin/lissom" | grep INTERP || fail "it has an interpreter"
! readelf -dW "$tree/bin/lissom" | grep NEEDED || fail "it needs libraries"

echo "The library that it preloads needs libc, of any version"
library=$(echo "$tree"/lib/lissom/liblissom-*.so)
[ "$(readelf -dW "$library" | grep -o 'NEEDED.*')" = 'NEEDED)             Shared library: [libc.so.6]' ] || fail "$(readelf -dW "$library" | grep NEEDED)"
versions=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV)
echo $versions
[ "$versions" = $'GLIBC_2.2.5\nGLIBC_2.3.2' ] || fail "old versions of glibc lack one of these"

echo "No paths of the machine that built them"
for f in "$tree/bin/lissom" "$library"; do
    for path in "$root" "$target" "${CARGO_HOME:-$HOME/.cargo}" "$HOME/."; do
        ! grep -aoF -m 3 "$path" "$f" || fail "${f##*/} contains $path"
    done
done

echo "A page for each verb, in a form that man understands"
for verb in "" -run -doctor -bench -manager -sched-start -kvm-apple; do
    head -n 6 "$tree/share/man/man1/lissom$verb.1" | grep -q "^\.TH lissom$verb 1" || fail "lissom$verb.1"
done
[ "$(cat "$tree"/share/man/man1/*.1 | grep -c '^\.TH')" = "$("$tree/bin/lissom" man | grep -c '^\.TH')" ] || fail "not all pages"

echo "cargo binstall finds the program in the archive"
# binstall KEY: print a template of Cargo.toml, filled in
binstall() {
    sed -n "s/^$1 = \"\(.*\)\"/\1/p" "$root/crates/lissom/Cargo.toml" |
        sed "s/{ version }/$version/g; s/{ bin }/lissom/"
}
url=$(binstall pkg-url)
[ "${url##*/}" = "$archive.tar.gz" ] || fail "another archive: $url"
[ -x "$work/$(binstall bin-dir)" ] || fail "the archive has no $(binstall bin-dir)"

echo "The package index accepts the wheel"
"$root/scripts/venv.sh" tests/dist/requirements.txt "$target/venv-dist"
"$target/venv-dist/bin/twine" check --strict "$wheel"

echo "The wheel's record holds"
python3 - "$wheel" <<'END'
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
record = next(n for n in wheel.namelist() if n.endswith("/RECORD"))
rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(wheel.read(record).decode()))}
assert set(rows) == set(wheel.namelist())
for name, (digest, size) in rows.items():
    if name != record:
        data = wheel.read(name)
        found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert (digest, size) == ("sha256=" + found, str(len(data))), name
END

echo "The same again gives the same"
cp SHA256SUMS "$work/first"
cd "$root" || exit
SOURCE_DATE_EPOCH=$(stat -c %Y "$tree/bin/lissom") CARGO_TARGET_DIR=$target bash packaging/dist.sh >"$work/again.log" 2>&1 || fail "$(tail "$work/again.log")"
diff "$work/first" "$dist/SHA256SUMS"
