# A Slurm with this machine as its only node, without systemd and if need be without root. Sourced
# by run.sh. All its files are in the given folder; nothing is left afterwards.

. "$(dirname "${BASH_SOURCE[0]}")/../vm/until.sh"

daemons=()

# Print a port of this machine on which no program listens.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 20000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

node_is_idle() {
    [ "$(sinfo -h -p all -o %T 2>/dev/null)" = idle ]
}

queue_is_empty() {
    [ -z "$(squeue -h 2>/dev/null)" ]
}

# start_cluster FOLDER [TASKPLUGIN PROCTRACK]: start Slurm and set SLURM_CONF for srun and similar
# commands. Returns false, after showing the logs, if it does not run.
start_cluster() {
    local folder=$1 task=${2:-task/affinity} proctrack=${3:-proctrack/linuxproc} user host
    export PATH=$PATH:/usr/sbin
    user=$(id -un)
    host=$(hostname -s)
    mkdir -p "$folder/state" "$folder/spool"
    export SLURM_CONF=$folder/slurm.conf
    # Variables of the user's own Slurm would act as options of srun.
    unset "${!SLURM_@}" "${!SBATCH_@}" "${!SALLOC_@}" 2>/dev/null
    export SLURM_CONF=$folder/slurm.conf
    cat >"$SLURM_CONF" <<CONF
ClusterName=lissom
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
PlugStackConfig=$folder/plugstack.conf
ProctrackType=$proctrack
TaskPlugin=$task
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4 State=UP
PartitionName=whole Nodes=ALL OverSubscribe=EXCLUSIVE State=UP
CONF
    : >"$folder/plugstack.conf"
    # --force: other users may be able to write to the folder's parents.
    (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
    munged --force --foreground --num-threads=2 --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munge.pid" \
        --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" >"$folder/munged.out" 2>&1 &
    daemons+=($!)
    until_true 20 test -S "$folder/munge.socket" || show_logs "$folder" || return 1
    slurmctld -D >"$folder/slurmctld.out" 2>&1 &
    daemons+=($!)
    slurmd -D >"$folder/slurmd.out" 2>&1 &
    daemons+=($!)
    until_true 60 node_is_idle || show_logs "$folder"
}

# show_logs FOLDER: print the logs and return false
show_logs() {
    echo "Slurm does not start here:"
    tail -n 15 "$1"/*.log "$1"/*.out
    return 1
}

stop_cluster() {
    local i
    if [ ${#daemons[@]} -gt 1 ]; then
        scancel --user="$(id -un)" 2>/dev/null
        until_true 30 queue_is_empty
    fi
    # In reverse order: slurmd reports its end to slurmctld, and both need munged.
    for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
        kill "${daemons[i]}" 2>/dev/null
        wait "${daemons[i]}" 2>/dev/null
    done
    daemons=()
}
