# Only one process and its descendants are scheduled (--only); all others remain with the kernel's
# own scheduler.
. ./lib.sh

# policy_of PID: print 0 for SCHED_OTHER, 7 for SCHED_EXT
policy_of() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $39 }'
}

start_hogs 2
./sync barrier --threads 4 --rounds 1000000 &
chosen=$!
case $(uname -r) in
6.*)
    # On these kernels, tasks of the kernel's own scheduler would take all its CPU time.
    refused --only $chosen
    cat /tmp/refusal
    kill $chosen
    wait $chosen
    end_hogs
    end
    ;;
esac
start_sched --only $chosen
[ "$(cat /sys/kernel/sched_ext/switch_all)" = 0 ] || fail "all were switched"
[ "$(policy_of $chosen)" = 7 ] || fail "the chosen process has policy $(policy_of $chosen)"
for hog in $hogs; do
    [ "$(policy_of $hog)" = 0 ] || fail "another process has policy $(policy_of $hog)"
done
advances $hogs $chosen
stop_sched
advances $hogs $chosen
kill $chosen
wait $chosen
end_hogs
end
