# The wheel, with Debian 11's pip and Python 3.9: installed into a virtual environment, used,
# removed.
. "$(dirname "$0")/lib.sh"
debian bullseye python3 python3-venv xz-utils
mkdir "$machine/package"
cp "$dist/$wheel" "$machine/package/"
show 'python3 --version && python3 -m venv /opt/env && /opt/env/bin/pip --version'
files | grep -v __pycache__ >"$work/files.before"

show "/opt/env/bin/pip install --no-index /package/$wheel"
show '/opt/env/bin/pip show -f lissom && ls -l /opt/env/bin/lissom'
files | LC_ALL=C comm -13 "$work/files.before" - | grep -v __pycache__ | awk '$2 !~ /^l/ && ($2 ~ /^.....w/ || $2 ~ /^........w/ || $2 ~ /[sStT]/)' >"$work/bad"
[ ! -s "$work/bad" ] || fail "modes: $(cat "$work/bad")"
show '/opt/env/bin/lissom --version'
show '/opt/env/bin/lissom doctor'

# The library is unpacked on demand: for root into /run, for others into their own cache.
show "/opt/env/bin/lissom run -- sh -c 'echo \$LD_PRELOAD'" | tee "$work/preload"
grep -qx '/run/lissom/liblissom-[0-9a-f]*\.so' "$work/preload" || fail "root's library"
mkdir -m 755 "$machine/home/user"
chown 1000:1000 "$machine/home/user"
inside_home=/home/user
show "setpriv --reuid 1000 --regid 1000 --clear-groups /opt/env/bin/lissom run -- sh -c 'echo \$LD_PRELOAD; ls -ld ~/.cache/lissom; ls -l ~/.cache/lissom'" | tee "$work/preload"
grep -qx '/home/user/\.cache/lissom/liblissom-[0-9a-f]*\.so' "$work/preload" || fail "the user's library"
unset inside_home
programs /opt/env/bin/lissom sort xz python3

# The package for Python. pip would leave files that `python -O` writes.
cp "$here/package.py" "$here/package_test.py" "$machine/tmp/t/"
show 'cd /tmp/t && PYTHONDONTWRITEBYTECODE=1 /opt/env/bin/python -m unittest -v package_test'
for path in "$machine"/opt/env/lib/python3*/site-packages/lissom; do
    [ -e "$path/py.typed" ] || fail "the package is not marked as typed"
done

show '/opt/env/bin/pip uninstall -y lissom'
# The unpacked library is not part of the environment: root's is gone with /run, without a cache.
rm -r "$machine/home/user" "$machine/tmp/t"
files | grep -v __pycache__ >"$work/files.now"
diff "$work/files.before" "$work/files.now" || fail "files were left behind (see above)"
