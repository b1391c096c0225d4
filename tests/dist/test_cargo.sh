# `cargo install --path crates/lissom` on a bare Debian 12, with the packages of
# docs/guide/install.md and this machine's Rust, without network.
. "$(dirname "$0")/lib.sh"
debian bookworm gcc libc6-dev clang-19 make cmake pkg-config autoconf automake autopoint flex bison gawk
sysroot=$(rustc --print sysroot)
mkdir -p "$machine/rust" "$machine/source" "$machine/crates"
# Copy tracked and new files only, no ignored ones.
git -C "$root" ls-files -z --cached --others --exclude-standard | tar -C "$root" --null -T - -cf - | tar -C "$machine/source" -xf -
cp -a "$sysroot/." "$machine/rust/"
(cd "$root" && cargo fetch --locked --quiet)
cp -a "${CARGO_HOME:-$HOME/.cargo}/registry" "$machine/crates/"

show "export PATH=/rust/bin:\$PATH CARGO_HOME=/crates
cd /source && cargo install --offline --locked --quiet --path crates/lissom --root /opt/lissom && ls -l /opt/lissom/bin"
show '/opt/lissom/bin/lissom --version && /opt/lissom/bin/lissom doctor'
same=$(show "/opt/lissom/bin/lissom run -- sh -c 'echo \$LD_PRELOAD'")
echo "$same"
grep -q '^/run/lissom/liblissom-' <<<"$same" || fail "the library"
show 'CARGO_HOME=/crates /rust/bin/cargo uninstall --root /opt/lissom lissom && find /opt/lissom'
