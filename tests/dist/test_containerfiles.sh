# Images built from ours by buildah: the application of docs/guide/recipes-services.md, and the
# agent of packaging/kubernetes. Their public bases may be out of reach, so bases are made here:
# Debian 12, and one with this machine's Go at the place where the public image has it.
. "$(dirname "$0")/lib.sh"
. "$root/tests/recipes/recipe.sh"
for tool in buildah go; do
    command -v "$tool" >/dev/null || skip "no $tool: scripts/need.sh dist_test kubernetes installs it"
done

# Use a store of our own, not the machine's. vfs and chroot need no kernel features that a container
# may lack.
store=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)
export BUILDAH_ISOLATION=chroot
build() {
    echo "# buildah build $*"
    buildah "${store[@]}" build --pull-never "$@"
}

# base NAME: make an image of the contents of $machine
base() {
    local container
    container=$(buildah "${store[@]}" from scratch)
    buildah "${store[@]}" add --quiet "$container" "$machine" / >/dev/null
    buildah "${store[@]}" config --env PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env GOPROXY=file:///modules \
        --env GOTOOLCHAIN=local --cmd /bin/sh "$container"
    buildah "${store[@]}" commit --quiet --rm "$container" "$1" >/dev/null
}

# within CONTAINER COMMAND...: run it in the container
within() {
    echo "# ${*:2}"
    buildah "${store[@]}" run "$1" -- "${@:2}" 2>&1
}

# says FILE TEXT: fail unless the file contains the text
says() {
    grep -qF -e "$2" "$1" || fail "'$2' is not said"
}

size() {
    echo "$1: $(du -sb --apparent-size "$2" | cut -f1) bytes, $(find "$2" -type f | wc -l) files"
}

# as by docker load or podman load
buildah "${store[@]}" pull --quiet "docker-archive:$dist/$image"
buildah "${store[@]}" images

debian bookworm
base localhost/debian:bookworm-slim
recipe dockerfile >"$work/Containerfile"
grep -qxF "COPY --from=lissom:$version /usr /usr" "$work/Containerfile" ||
    fail "the recipe is of another version"
mkdir "$work/context"
cc -O2 -pthread "$root/tests/recipes/app.c" -o "$work/context/app"
image_of_debian=docker-image://localhost/debian:bookworm-slim
build --quiet --build-context "debian:bookworm-slim=$image_of_debian" -f "$work/Containerfile" \
    -t localhost/application "$work/context"
buildah "${store[@]}" inspect --type image \
    --format '{{range .OCIv1.Config.Entrypoint}}{{println .}}{{end}}' localhost/application |
    grep . >"$work/entry"
mapfile -t entry <"$work/entry"
application=$(buildah "${store[@]}" from --pull-never localhost/application)
within "$application" id | tee "$work/said"
says "$work/said" "uid=65534(nobody)"
within "$application" env LISSOM_VERBOSE=1 "${entry[@]}" | tee "$work/said"
says "$work/said" "ok: 16 threads"
says "$work/said" "lissom: active, "
within "$application" lissom --version | tee "$work/said"
says "$work/said" "lissom $version"
within "$application" lissom doctor | tee "$work/said"
says "$work/said" "lissom would be active for programs here."
within "$application" lissom run -v -- true | tee "$work/said"
says "$work/said" "preloads /usr/lib/lissom/liblissom-"
within "$application" sh -c 'lissom run -- sh -c "exit 7"; echo "exit code $?"' | tee "$work/said"
says "$work/said" "exit code 7"
within "$application" sh -c 'for i in $(seq 200000); do echo "$((i * 7919 % 200003))"; done >/tmp/lines
    lissom run --stats=json --stats-file=/tmp/stats -- sort -n --parallel=8 /tmp/lines | md5sum; sort -n /tmp/lines | md5sum; grep -m 1 state /tmp/stats' | tee "$work/said"
says "$work/said" '"state": "active"'
[ "$(grep -c '  -$' "$work/said")" = 2 ] && [ "$(grep '  -$' "$work/said" | uniq | wc -l)" = 1 ] || fail "another output than natively"
buildah "${store[@]}" rm "$application" >/dev/null

# The agent.
grep -qx "ARG LISSOM=lissom:$version" "$root/packaging/kubernetes/Containerfile" || fail "packaging/kubernetes/Containerfile is of another version"
mkdir -p "$machine/usr/local/go"
tar -C "$(go env GOROOT)" --exclude=./test --exclude=./doc --exclude=./api -cf - . | tar -C "$machine/usr/local/go" -xf -
base localhost/golang
(cd "$root/packaging/kubernetes/agent" && go mod download)
build --quiet --build-arg GO=localhost/golang --volume "$(go env GOMODCACHE)/cache/download:/modules:ro" -f "$root/packaging/kubernetes/Containerfile" \
    -t localhost/lissom-agent "$root"
skopeo inspect --config "containers-storage:[vfs@$work/storage+$work/run]localhost/lissom-agent"
agent=$(buildah "${store[@]}" from --pull-never localhost/lissom-agent)
mounted=$(buildah "${store[@]}" mount "$agent")
(cd "$mounted" && find . -printf '%M %u:%g %s %p\n')
size "lissom-agent" "$mounted"
find "$mounted" -type f -printf '%P\n' | LC_ALL=C sort >"$work/files"
printf '%s\n' usr/bin/lissom usr/bin/lissom-agent usr/share/doc/lissom/{LICENSE,README.md,third-party.txt} | diff - "$work/files" || fail "what is in the image"
! find "$mounted" ! -type l \( -perm /6022 -o ! -user root \) | grep . || fail "modes or owners"
tar -xOf "$dist/$archive.tar.gz" "$archive/bin/lissom" | cmp - "$mounted/usr/bin/lissom" || fail "not the binary of the archive"
within "$agent" /usr/bin/lissom --version
within "$agent" /usr/bin/lissom run -v -- /usr/bin/lissom --version
within "$agent" /usr/bin/lissom-agent --help | tee "$work/said"
says "$work/said" "usage: lissom-agent [options]"
# The DaemonSet's init container: its folder is the host's.
mkdir -p "$mounted/opt/lissom"
within "$agent" /usr/bin/lissom-agent install
[ -s "$mounted/opt/lissom/lib64/$(cat "$mounted/opt/lissom/current")" ] || fail "no library was installed"
buildah "${store[@]}" rm --all >/dev/null
