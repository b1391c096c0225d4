#!/usr/bin/env bash
# Install missing packages of the named groups, and print their names:
#     scripts/need.sh build test demo lint vm kvm
# For Debian 12; elsewhere it names the missing packages and stops.
set -euo pipefail

declare -A packages=() # package -> why it is installed

# want PACKAGE COMMAND: install the package unless the command exists
want() {
    command -v "$2" >/dev/null 2>&1 || packages[$1]="$2"
}

# want_file PACKAGE PATH: install the package unless the file exists
want_file() {
    [ -e "$2" ] || packages[$1]="$2"
}

# Install a clang that crates/build/src/bpf.rs accepts. Debian 12's own `clang` is version 14.
want_clang() {
    local version
    for version in 21 20 19 18 17 16 15; do
        command -v "clang-$version" >/dev/null 2>&1 && return
    done
    { command -v clang >/dev/null 2>&1 && ! clang --version | grep -q "version 1[0-4]\."; } || packages[clang-19]="clang"
}

# want_library PACKAGE NAME: install the package unless the loader knows the library
want_library() {
    local cache
    cache=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p)
    grep -q "^[[:space:]]*$2 " <<<"$cache" || packages[$1]="$2"
}

# Some of the tests' machines contain nothing else.
want_static_busybox() {
    { command -v busybox >/dev/null 2>&1 && ! ldd "$(command -v busybox)" >/dev/null 2>&1; } ||
        packages[busybox-static]="a busybox without libraries"
}

need_build() {
    want gcc gcc
    want_file libc6-dev /usr/include/stdio.h
    want make make
    want cmake cmake
    # BPF programs, and libbpf with its libelf.
    want_clang
    want pkg-config pkg-config
    want autoconf autoreconf
    want automake automake
    want autopoint autopoint
    want flex flex
    want bison bison
    want gawk gawk
}

need_test() {
    need_build
    want g++ g++
    want gdb gdb
    want memcached memcached
    want erlang-base erlc
    want_file libclang-rt-19-dev /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.asan-x86_64.a
    want spin spin
    want python3 python3
    # A terminal for `lissom top`, and Prometheus's own parser.
    want_module python3-pyte pyte
    want_module python3-prometheus-client prometheus_client
    want_library libgomp1 libgomp.so.1
    # The package name in Debian 12; other releases have another version.
    if apt-cache show libomp5-14 >/dev/null 2>&1; then
        want_library libomp5-14 libomp.so.5
        want clang clang
        want_file libomp-14-dev /usr/lib/llvm-14/lib/libomp.so
    fi
}

# want_module PACKAGE NAME: install the package unless Debian's own Python has the module
want_module() {
    /usr/bin/python3 -c "import $2" 2>/dev/null || packages[$1]="Python's $2"
}

need_demo() {
    need_build
    want python3 python3
    want_library libgomp1 libgomp.so.1
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages[python3-venv]="the venv module"
}

# Programs that the study measures beside our own. It omits missing ones.
need_study() {
    want memcached memcached
    want postgresql pg_lsclusters
    want pigz pigz
    want zstd zstd
    want xz-utils xz
    want x264 x264
    want ncbi-blast+ blastn
    want dbench dbench
    want ffmpeg ffmpeg
    want redis-server redis-server
    want_file libfftw3-dev /usr/include/fftw3.h
}

# Slurm for a cluster of one machine in a test's folder.
need_slurm() {
    need_build
    want_file munge /usr/sbin/munged
    want_file slurmctld /usr/sbin/slurmctld
    want_file slurmd /usr/sbin/slurmd
    want slurm-client srun
    [ -n "$(compgen -G "/usr/lib/*/slurm-wlm/select_cons_*.so")" ] || packages[slurm-wlm-basic-plugins]="Slurm's plugins"
    want_file libslurm-dev /usr/include/slurm/spank.h
    want python3 python3
    want_library libgomp1 libgomp.so.1
}

# Programs of docs/guide/recipes.md. Those in Python are in tests/recipes/requirements.txt.
need_recipes() {
    need_build
    want r-base-core Rscript
    want libmpich-dev mpicc.mpich
    want mpich mpiexec.mpich
    want libopenmpi-dev mpicc.openmpi
    want openmpi-bin mpiexec.openmpi
    want python3 python3
    want_library libgomp1 libgomp.so.1
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages[python3-venv]="the venv module"
}

# Prometheus for a test, with promtool. (Debian's package also starts an instance of its own.)
need_dashboard() {
    want prometheus prometheus
    want prometheus promtool
    want python3 python3
    want_library libgomp1 libgomp.so.1
}

need_dist() {
    want dpkg dpkg-deb
    want python3 python3
    want xz-utils xz
    want rpm rpmbuild
}

need_dist_test() {
    want debootstrap debootstrap
    want lintian lintian
    want skopeo skopeo
    want umoci umoci
    want buildah buildah
    want musl-tools musl-gcc
    want_static_busybox
    want binutils objdump
    want rpm2cpio rpm2cpio
    want cpio cpio
}

need_model() {
    want spin spin
    want gcc gcc
}

need_conformance() {
    want gcc gcc
    want g++ g++
    want python3 python3
    want xz-utils xz
    compgen -G "/usr/src/glibc/glibc-*.tar.xz" >/dev/null ||
        packages[glibc-source]="/usr/src/glibc/glibc-*.tar.xz"
}

# Build requirements of the public suites of `make conformance SUITES=DIR`. The user provides the
# sources.
need_conformance_suites() {
    want gfortran gfortran
    want m4 m4
    want autoconf autoreconf
    want automake automake
    want pkg-config pkg-config
    # LLVM's tests need clang, libomp and FileCheck of one version: that of need_test.
    if apt-cache show libomp5-14 >/dev/null 2>&1; then
        want_library libomp5-14 libomp.so.5
        want_file clang-14 /usr/lib/llvm-14/bin/clang
        want_file libomp-14-dev /usr/lib/llvm-14/lib/libomp.so
        want_file llvm-14-tools /usr/lib/llvm-14/bin/FileCheck
    fi
}

# need_go checks for Go itself.
need_kubernetes() {
    want gcc gcc
    want binutils readelf
    want runc runc
    want musl-tools musl-gcc
}

# Formatters in one version each, since versions differ in their results. ruff comes from pip
# (scripts/venv.sh), and actionlint from Go. need_go checks for Go itself.
need_lint() {
    need_build
    want clang-format-19 clang-format-19
    want shellcheck shellcheck
    want python3 python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages[python3-venv]="the venv module"
}

# Virtual machines in software emulation, and programs that run in them.
need_vm() {
    need_build
    want_static_busybox
    want cpio cpio
    want stress-ng stress-ng
    new_qemu || [ -z "$(installable_qemu)" ] || packages[qemu-system-x86]="QEMU 10 or newer"
}

# Virtual machines that can run virtual machines, and modules for their kernel.
need_kvm() {
    need_vm
    want xz-utils xz
    want python3 python3
}

# Older versions crash, or emulate too little of SVM.
new_qemu() {
    local version
    version=$(qemu-system-x86_64 --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
    [ "${version:-0}" -ge 10 ]
}

# Print the candidate's version if it is new enough.
installable_qemu() {
    apt-cache policy qemu-system-x86 2>/dev/null | sed -n 's/ *Candidate: *//p' | grep -E '^1:[1-9][0-9]'
}

# Debian 12 has QEMU 7, and 10 in its backports.
install_backported_qemu() {
    new_qemu && return
    command -v apt-get >/dev/null 2>&1 || { echo "QEMU 10 or newer is needed: install it yourself" >&2; exit 1; }
    . "$(dirname "$0")/apt.sh"
    configure_apt "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/vm/apt"
    need_root qemu-system-x86
    echo "missing: QEMU 10 or newer; installing with apt-get from the backports: qemu-system-x86"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${own_apt[@]}" -o DPkg::Lock::Timeout=600 \
        install -y -qq --no-install-recommends -t bookworm-backports qemu-system-x86 >/dev/null
}

install_packages() {
    [ ${#packages[@]} -gt 0 ] || return 0
    local package
    for package in "${!packages[@]}"; do
        echo "missing: ${packages[$package]} (package $package)"
    done
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "This is no Debian: install the packages above with your own package manager." >&2
        exit 1
    fi
    need_root "${!packages[@]}"
    echo "installing with apt-get: ${!packages[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends "${!packages[@]}" >/dev/null
}

# need_root PACKAGE...: set as_root to the prefix of commands that need root
need_root() {
    as_root=()
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "Run this as root: apt-get install $*" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
}

# Every group but `model` needs Rust. Debian 12 has no rustup package, and its cargo is too old.
need_rust() {
    local oldest=1.88
    PATH="$HOME/.cargo/bin:$PATH"
    if ! command -v cargo >/dev/null 2>&1 && ! command -v rustup >/dev/null 2>&1 &&
        apt-cache show rustup >/dev/null 2>&1; then
        packages=([rustup]="cargo")
        install_packages
    fi
    local have
    have=$(cargo --version 2>/dev/null | cut -d' ' -f2 || true)
    if [ -n "$have" ] && [ "$(printf '%s\n' "$oldest" "$have" | sort -V | head -n 1)" = "$oldest" ]; then
        return 0
    fi
    if command -v rustup >/dev/null 2>&1; then
        echo "installing with rustup: the stable toolchain"
        rustup toolchain install stable --profile minimal --component clippy --component rustfmt
        rustup default stable
        return 0
    fi
    {
        echo "Rust $oldest or newer is needed; found: ${have:-none}."
        echo "Debian 12 packages only 1.63 and no rustup. Install rustup as the Rust project describes,"
        echo "open a new shell, and run make again."
    } >&2
    exit 1
}

# Any Go from 1.21 on fetches the version of go.mod, if permitted (GOTOOLCHAIN). Debian 12 has 1.19,
# and newer versions in its backports.
need_go() {
    local have oldest=1.21
    have=$(go env GOVERSION 2>/dev/null | sed 's/^go//')
    if [ -n "$have" ] && [ "$(printf '%s\n' "$oldest" "$have" | sort -V | head -n 1)" = "$oldest" ]; then
        return 0
    fi
    command -v apt-get >/dev/null 2>&1 || { echo "Go $oldest or newer is needed: install it yourself" >&2; exit 1; }
    . "$(dirname "$0")/apt.sh"
    configure_apt "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/vm/apt"
    need_root golang-go
    echo "missing: Go $oldest or newer; installing with apt-get from the backports: golang-go"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${own_apt[@]}" -o DPkg::Lock::Timeout=600 \
        install -y -qq --no-install-recommends -t bookworm-backports golang-go >/dev/null
}

# Checks of .github/workflows, in the folder of ruff.
install_actionlint() {
    local version=v1.7.7 folder
    folder=$(cd "$(dirname "$0")/.." && pwd)/target/venv-lint/bin
    [ "$("$folder/actionlint" -version 2>/dev/null | head -n 1)" != "$version" ] || return 0
    echo "installing with go into $folder: actionlint $version"
    GOBIN=$folder go install "github.com/rhysd/actionlint/cmd/actionlint@$version" ||
        echo "it cannot be installed: lint will not check the workflows" >&2
}

for group in "$@"; do
    "need_$group"
done
install_packages
case " $* " in
*" kvm "* | *" vm "*) install_backported_qemu ;;
esac
case " $* " in
*" kubernetes "* | *" dist_test "* | *" lint "*) need_go ;;
esac
case " $* " in
*" lint "*)
    "$(dirname "$0")/venv.sh" scripts/lint/requirements.txt target/venv-lint
    install_actionlint
    ;;
esac
case " $* " in
*" model "*) ;;
*) need_rust ;;
esac
