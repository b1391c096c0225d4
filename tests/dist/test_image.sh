# The container image: checked by the tools for images, unpacked and run by chroot, and its files
# copied into an image with glibc.
. "$(dirname "$0")/lib.sh"
for tool in skopeo umoci; do
    command -v "$tool" >/dev/null || skip "no $tool: scripts/need.sh dist_test installs it"
done
skopeo inspect "oci-archive:$dist/$image:$version"
skopeo inspect --config "docker-archive:$dist/$image" | tee "$work/config"
grep -q '"/usr/bin/lissom"' "$work/config" || fail "its entry point"
grep -q '"User": "65534:65534"' "$work/config" || fail "its user"
# Copying reads every byte and checks every digest.
skopeo copy --quiet "oci-archive:$dist/$image:$version" "oci:$work/layout:$version"
skopeo copy --quiet "docker-archive:$dist/$image" "dir:$work/copied"
umoci unpack --image "$work/layout:$version" "$work/bundle"
mv "$work/bundle/rootfs" "$machine"
(cd "$machine" && find . -printf '%M %u:%g %p\n')
! find "$machine" ! -type l \( -perm /6022 -o ! -user root \) | grep . || fail "modes or owners"

[ -L "$machine/usr/lib/lissom/liblissom.so" ] || fail "the library is there twice"

# The image contains only lissom: it must run, and run a given program without libc.
code=0
enter /usr/bin/lissom --version
enter /usr/bin/lissom run -v -- /usr/bin/lissom --version 2>&1 | tee "$work/said"
grep -q 'runs natively: /usr/bin/lissom is statically linked' "$work/said" || fail "it does not say why"
enter /usr/bin/lissom doctor >"$work/said" || code=$?
cat "$work/said"
[ "$code" = 1 ] || fail "doctor's exit code: $code"

# as COPY --from=lissom:VERSION /usr /usr
mv "$machine" "$work/lissom"
debian bullseye python3 python3-venv xz-utils
cp -a "$work/lissom/usr/." "$machine/usr/"
show 'lissom --version && lissom doctor | tail -n 2'
show "lissom run -- sh -c 'echo \$LD_PRELOAD'" | tee "$work/preload"
grep -qx '/usr/lib/lissom/liblissom-[0-9a-f]*\.so' "$work/preload" || fail "not the library of the image"
