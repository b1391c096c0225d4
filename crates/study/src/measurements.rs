//! Measurements from which figures are made. Each is a command of lissom, whose report is kept as
//! JSON.

use std::path::PathBuf;

/// One run of a benchmark. Several figures may be views of it.
pub struct Measurement {
    pub name: &'static str,
    /// Description for people, in one line.
    pub what: &'static str,
    /// Arguments of lissom, separated by spaces. `{n}` is the number of CPUs. `{cpus}` is a list:
    /// the powers of two below it, and itself. `{down}` lists the numbers from it down to 11/16 of
    /// it.
    pub full: &'static str,
    /// Shorter arguments: a minute at most on 2 CPUs.
    pub quick: &'static str,
    /// Whether it also measures the suites that the user has built.
    pub takes_suites: bool,
    /// Folders whose changes make its figures out of date.
    pub code: &'static [&'static str],
}

const RUNTIME: &[&str] = &["runtime", "workloads"];
const SIMULATION: &[&str] = &["crates/kvm/src/simulate", "runtime/policy"];

const fn of(
    name: &'static str,
    what: &'static str,
    full: &'static str,
    quick: &'static str,
) -> Measurement {
    Measurement { name, what, full, quick, takes_suites: false, code: RUNTIME }
}

/// A figure of `lissom kvm simulate`, which is quick with a single seed.
macro_rules! simulated {
    ($name:literal, $figure:literal, $what:literal) => {
        Measurement {
            code: SIMULATION,
            ..of(
                $name,
                $what,
                concat!("kvm simulate --figure ", $figure, " --json"),
                concat!("kvm simulate --figure ", $figure, " --json --seeds 1"),
            )
        }
    };
}

pub const MEASUREMENTS: &[Measurement] = &[
    of(
        "programs",
        "whole programs with as many threads as CPUs, and 4 times as many",
        "bench programs --factor 4 --switch auto --runs 5",
        "bench programs --quick --factor 4 --switch auto --runs 3 --limit 6s",
    ),
    Measurement {
        takes_suites: true,
        ..of(
            "papers",
            "programs written from the papers' suites, with 4 times as many threads as CPUs",
            "bench programs npb parsec splash rodinia --factor 4 --switch auto --runs 5 \
             --limit 20s",
            "bench programs npb-ep npb-cg npb-lu parsec-streamcluster splash-ocean \
             splash-volrend rodinia-srad --quick --factor 4 --switch auto --runs 3 --limit 6s",
        )
    },
    of(
        "own-loops",
        "NPB's LU and SPLASH-2's volrend with 1 to 16 threads a CPU",
        "bench programs npb-lu splash-volrend --threads 2,4,8,16,32 --switch auto --runs 3 \
         --limit 20s",
        "bench programs npb-lu splash-volrend --quick --threads 8 --switch auto --runs 3 \
         --limit 6s",
    ),
    of(
        "cores",
        "whole programs on fewer CPUs",
        "bench programs blackscholes ep cg histgb pool omp-flags --cpus {cpus} --threads 8 --runs \
         5 --switch auto",
        "bench programs ep cg pool --cpus {cpus} --threads 8 --runs 1 --scale 0.2 --switch auto",
    ),
    of(
        "switch",
        "direct cost of a context switch",
        "bench switch --switch kernel,auto",
        "bench switch --scale 0.2 --threads 1,2,8,32 --runs 3 --switch auto",
    ),
    of(
        "locality",
        "indirect cost of a context switch, in caches and TLBs",
        "bench locality --switch auto --runs 5",
        "bench locality --scale 0.2 --runs 3 --kib 16,128,512,2048,8192,65536 --switch off",
    ),
    of(
        "primitives",
        "barrier, condition variable, mutex, semaphore and queue",
        "bench sync barrier cond mutex gomp-barrier sem queue --threads 8,32,128 --cpus 1,{n} \
         --runs 5 --scale 0.3 --switch auto",
        "bench sync barrier cond mutex --threads 32 --cpus 1,{n} --runs 3 --scale 0.2 --switch \
         auto",
    ),
    of(
        "threads",
        "barrier, condition variable and queue with 2 to 1024 threads",
        "bench sync barrier cond queue --threads 2,4,8,16,32,64,128,256,512,1024 --runs 5 --scale \
         0.25 --switch auto",
        "bench sync barrier cond --threads 2,8,32,128,1024 --runs 1 --scale 0.1 --switch auto",
    ),
    of(
        "server",
        "throughput and latency of memcached and PostgreSQL",
        "bench server --threads 4,16 --runs 4 --switch auto --scale 0.5",
        "bench server memcached-max memcached-load --cpus {n} --threads 4,16 --runs 1 --scale 0.3 \
         --rate 20000 --switch auto",
    ),
    of(
        "spinlocks",
        "a token passed by eleven kinds of spin locks",
        "bench spin lock-pipeline --pause yes --threads 8 --runs 5 --scale 0.2 --switch auto",
        "bench spin lock-pipeline --pause yes --threads 8 --runs 3 --scale 0.3 --limit 8s --lock \
         mcs,ticket,ttas --switch auto",
    ),
    of(
        "spinning",
        "programs that busy-wait in their own loops",
        "bench spin pipeline barrier spin-then-block omp-flags omp-active omp-default --threads 8 \
         --runs 5 --scale 0.3 --switch auto",
        "bench spin pipeline barrier omp-flags --threads 8 --runs 3 --scale 0.3 --limit 8s \
         --switch auto",
    ),
    of(
        "sensitivity",
        "sensitivity of busy-waiting detection",
        "bench spin sensitivity --lock array,clh,malthusian,mcs,partitioned,pthread,ticket,ttas,\
         cna,aqs --pause yes,no --switch auto --tries 50000 --scale 0.5",
        "bench spin sensitivity --lock array,clh,malthusian,mcs,partitioned,pthread,ticket,ttas,\
         cna,aqs --pause yes --switch auto --tries 5000 --scale 0.05",
    ),
    of(
        "specificity",
        "specificity of busy-waiting detection in NPB's programs, and its overhead",
        "bench spin specificity --program npb --switch auto --tries 500000 --runs 3 --limit 60s",
        "bench spin specificity --program npb --switch auto --tries 3000 --runs 1 --scale 0.1",
    ),
    of(
        "specificity-programs",
        "specificity of busy-waiting detection in everyday programs",
        "bench spin specificity --switch auto --samples 3000",
        "bench spin specificity --switch auto --samples 100",
    ),
    of(
        "locks",
        "glibc's mutex, Mutexee, MCS-TP and SHFLLOCK, and lissom",
        "bench locks parsec-fluidanimate splash-ocean parsec-streamcluster splash-barnes \
         parsec-dedup mutex cond queue --runs 3 --switch auto --scale 0.5 --limit 20s",
        "bench locks parsec-fluidanimate splash-barnes parsec-dedup mutex --threads 8 --runs 1 \
         --switch auto --scale 0.5 --limit 6s",
    ),
    of(
        "mechanisms",
        "lissom with one mechanism switched off at a time",
        "bench mechanisms --threads 32 --runs 5",
        "bench mechanisms --threads 16 --runs 1 --scale 0.1",
    ),
    of("idle", "synchronization patterns, by idle policy", "bench idle", "bench idle --quick"),
    of("smt", "applications in pairs, by idle policy", "bench smt", "bench smt --quick"),
    of(
        "profiles",
        "number of runnable threads of single programs, and their scaling",
        "bench mixes --profile --scaling",
        "bench mixes --quick --profile --scaling --mix blackscholes+ep --scale 0.5",
    ),
    of(
        "mixes",
        "pairs of programs that share the CPUs",
        "bench mixes --runs 3 --completed 1",
        "bench mixes --quick",
    ),
    of(
        "caps",
        "a mix with a cap on the CPUs of the malleable program",
        "bench mixes --mix fft3d+srad --scenario stock,manager --cap {down} --runs 5 --completed 1",
        "bench mixes --quick --mix fft3d+srad --scenario stock,manager --cap {down}",
    ),
    simulated!("apple-1", "1", "simulated VMs: dbench and streamcluster by fixed window, 2 VMs"),
    simulated!("apple-3", "3", "simulated VMs: APPLE and fixed windows, 2 VMs"),
    simulated!("apple-4", "4", "simulated VMs: APPLE and fixed windows, 4 VMs"),
    simulated!("apple-5", "5", "simulated VMs: dbench's inefficiency by window"),
    simulated!("apple-6", "6", "simulated VMs: the window by KVM's own rule"),
    simulated!("apple-7", "7", "simulated VMs: the window under APPLE"),
    simulated!("ple-rules", "rules", "simulated VMs: settings of APPLE, EEVDF, 4 VMs"),
    simulated!("ple-one-vm", "one-vm", "simulated VMs: one VM alone on its host"),
    simulated!("ple-change", "change", "simulated VMs whose work changes"),
    of(
        "resize",
        "programs while their CPUs change, by affinity",
        "bench elastic affinity-omp affinity-spin affinity-histgb --runs 5 --limit 30s --scale 0.3 \
         --switch auto",
        "bench elastic affinity-omp --runs 1 --limit 10s --scale 0.1 --switch auto",
    ),
    of(
        "adapt-cpus",
        "programs whose number of CPUs changes once while they run",
        "bench elastic resize-ep resize-streamcluster resize-ocean resize-cg --runs 3 --scale \
         0.5 --limit 20s --switch auto",
        "bench elastic resize-ep resize-ocean --runs 1 --limit 15s --scale 0.5 --switch auto",
    ),
    of(
        "quota",
        "programs under a CPU quota (as root)",
        "bench elastic quota-omp quota-spin quota-histgb --runs 5 --limit 30s --scale 0.3 --switch \
         auto",
        "bench elastic quota-omp --runs 1 --limit 10s --scale 0.1 --switch auto",
    ),
    of(
        "ml",
        "training with LightGBM and scikit-learn",
        "bench ml --threads {n},8,32 --rows 20000 --runs 5 --switch auto --scale 0.5",
        "bench ml --threads 8 --rows 20000 --runs 1 --switch auto --scale 0.2",
    ),
];

pub fn find(name: &str) -> Option<&'static Measurement> {
    MEASUREMENTS.iter().find(|m| m.name == name)
}

impl Measurement {
    /// Return the arguments of lissom. `cpus`: number of CPUs of this machine.
    pub fn arguments(&self, quick: bool, cpus: u32, suites: &[PathBuf]) -> Vec<String> {
        let powers: Vec<String> = (0..)
            .map(|i| 1 << i)
            .take_while(|n| *n < cpus)
            .chain([cpus])
            .map(|n: u32| n.to_string())
            .collect();
        let text = if quick { self.quick } else { self.full };
        let down: Vec<String> =
            ((cpus * 11 / 16).max(1)..=cpus).rev().map(|n| n.to_string()).collect();
        let text = text
            .replace("{cpus}", &powers.join(","))
            .replace("{down}", &down.join(","))
            .replace("{n}", &cpus.to_string());
        let mut words: Vec<String> = text.split_whitespace().map(String::from).collect();
        if self.takes_suites {
            words.extend(suites.iter().flat_map(|f| ["--suite".into(), f.display().to_string()]));
        }
        // The simulation prints JSON by itself.
        if words[0] == "bench" {
            words.push("--json".into());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_cpus_is_filled_in() {
        let cores = find("cores").expect("a measurement");
        let words = |cpus| cores.arguments(true, cpus, &[]).join(" ");
        assert!(words(2).contains("--cpus 1,2 "), "{}", words(2));
        assert!(words(6).contains("--cpus 1,2,4,6 "), "{}", words(6));
        assert!(words(1).contains("--cpus 1 "), "{}", words(1));
        let caps = find("caps").expect("a measurement");
        let words = |cpus| caps.arguments(false, cpus, &[]).join(" ");
        assert!(words(2).contains("--cap 2,1 "), "{}", words(2));
        assert!(words(16).contains("--cap 16,15,14,13,12,11 "), "{}", words(16));
        assert!(find("no such").is_none());
    }
}
