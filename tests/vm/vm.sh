#!/usr/bin/env bash
# Run a command in a virtual machine with a Debian kernel, in QEMU's software emulation:
#     tests/vm/vm.sh [OPTION]... -- COMMAND [ARG]...
#
#   --kernel VERSION   Debian's kernel, as for kernel.sh [default: 6.12]
#   --program FILE     copy FILE and its libraries into the machine's /bin; may be repeated
#   --files DIR        copy DIR's contents to /files, the working directory; may be repeated
#   --kvm              let the machine run virtual machines: an AMD processor with SVM and the pause
#                      filter; kvm and kvm_amd are loaded. Give them parameters by
#                      --append "kvm_amd.pause_filter_count=100"
#   --icount           one CPU, whose clock advances 1 ns per instruction: this machine's load does
#                      not change measured times, and idle time costs nothing. A program's times
#                      vary by about 1 % if it skips the first 2 s
#   --cpus N           [default: 2]
#   --memory MB        [default: 1024]
#   --timeout SECONDS  kill the machine after this time [default: 170]
#   --cpu MODEL        QEMU's model [default: qemu64]
#   --append ARGS      add to the kernel's command line; may be repeated
#   --console          show the kernel's messages on standard error
#
# The command's output and errors appear on standard output; its exit code is that of vm.sh. 124:
# timeout; 125: the machine did not start or died; its last messages are shown. There is no network
# and no disk. proc, sys, tmp, debugfs, tracefs, bpffs and cgroup v2 with the CPU controller are
# mounted.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
kernel=6.12 cpus=2 memory=1024 timeout=170 cpu='' append='' kvm='' icount='' console='' programs=() files=()
while [ $# -gt 0 ]; do
    case $1 in
    --kernel) kernel=$2 && shift 2 ;;
    --program) programs+=("$2") && shift 2 ;;
    --files) files+=("$2") && shift 2 ;;
    --kvm) kvm=1 && shift ;;
    --icount) icount=1 && shift ;;
    --cpus) cpus=$2 && shift 2 ;;
    --memory) memory=$2 && shift 2 ;;
    --timeout) timeout=$2 && shift 2 ;;
    --cpu) cpu=$2 && shift 2 ;;
    --append) append+=" $2" && shift 2 ;;
    --console) console=1 && shift ;;
    --) shift && break ;;
    *) echo "vm.sh: unknown option $1; see the head of $0" >&2 && exit 2 ;;
    esac
done
[ $# -gt 0 ] || { echo "vm.sh: no command; see the head of $0" >&2; exit 2; }
for tool in qemu-system-x86_64 busybox cpio; do
    command -v "$tool" >/dev/null || { echo "vm.sh: $tool is missing: run scripts/need.sh vm" >&2; exit 125; }
done
if [ -n "$kvm" ]; then
    folder=$("$here/kernel.sh" --kvm "$kernel")
    # QEMU does not offer the pause filter, because it does not count PAUSEs: with the intercept
    # set, every PAUSE exits. A filter count of 0 would do the same, so the guest may be offered the
    # filter.
    cpu=${cpu:-qemu64,+svm,+npt,+pause-filter,+pfthreshold,x-force-features=on}
else
    folder=$("$here/kernel.sh" "$kernel")
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT HUP
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp,files,modules,lib64,etc}
# BusyBox has to be the statically linked one.
cp "$(command -v busybox)" "$root/bin/busybox"
[ -z "$kvm" ] || cp "$folder"/modules/*.ko "$root/modules/"
for folder_of_files in "${files[@]}"; do
    cp -RL "$folder_of_files/." "$root/files/"
done
for program in "${programs[@]}"; do
    cp -L "$program" "$root/bin/"
    # A static program has no libraries.
    { ldd "$program" 2>/dev/null | grep -o '/[^ ]*' || true; } | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
done
printf 'root:x:0:0:root:/:/bin/sh\n' >"$root/etc/passwd"
printf '%s\0' "$@" >"$root/command"
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ TERM=dumb
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev && mount -t tmpfs tmp /tmp
mkdir -p /dev/pts /dev/shm && mount -t devpts devpts /dev/pts && mount -t tmpfs shm /dev/shm
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
for module in irqbypass ccp kvm kvm-amd; do
    [ -e /modules/$module.ko ] || continue
    name=$(echo $module | tr - _)
    insmod /modules/$module.ko $(tr ' ' '\n' </proc/cmdline | sed -n "s/^$name\.//p")
done
stty -F /dev/ttyS1 raw
cd /files
# Pass the exit code through a file, since xargs turns it into 123.
xargs -0 -a /command sh -c '"$@"; echo $? >/tmp/exit' sh </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS2 raw
echo "exit $(cat /tmp/exit)" >/dev/ttyS2
sleep 0.2
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initrd"
rm -rf "$root"

accelerator=(-accel "tcg,thread=multi" -smp "$cpus")
if [ -n "$icount" ]; then
    accelerator=(-accel "tcg,thread=single" -icount "shift=0,sleep=off" -smp 1)
    # A fixed layout, for reproducible speed.
    append+=" nokaslr"
fi
# Each message takes time on the emulated serial line. Warnings and errors have to be visible if the
# machine dies.
[ -n "$console" ] || append+=" loglevel=5"
code=0
# Run it in the background: a shell handles signals only after its foreground command.
timeout -k 5 "$timeout" qemu-system-x86_64 "${accelerator[@]}" -machine q35 -cpu "${cpu:-qemu64}" -m "$memory" \
    -nodefaults -no-user-config -display none -no-reboot -kernel "$folder/vmlinuz" -initrd "$work/initrd" \
    -append "console=ttyS0 panic=-1 mitigations=off tsc=reliable $append" \
    -serial "file:$work/console" -serial stdio -serial "file:$work/exit" </dev/null 2>"$work/warnings" &
machine=$!
trap 'kill $machine 2>/dev/null; exit 143' TERM INT HUP
wait "$machine" || code=$?
# QEMU warns about features that it was forced to offer; ignore these warnings.
grep -v "TCG doesn't support requested feature" "$work/warnings" >&2 || true
[ -z "$console" ] || cat "$work/console" >&2
if [ "$code" = 124 ] || [ "$code" = 137 ]; then
    [ -n "$console" ] || tail -n 40 "$work/console" >&2
    echo "vm.sh: still running after $timeout s" >&2
    exit 124
fi
result=$(sed -n 's/^exit \([0-9]*\).*/\1/p' "$work/exit" 2>/dev/null || true)
if [ -z "$result" ]; then
    [ -n "$console" ] || tail -n 40 "$work/console" >&2
    echo "vm.sh: the machine ended before the command did" >&2
    exit 125
fi
exit "$result"
