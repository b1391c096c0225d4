//! Tests of the whole model.

use indicatif::ProgressBar;
use proptest::prelude::*;

use super::host::{Cause, Config, Doing, Host, State};
use super::run;
use super::stats::Report;
use super::window::{AppleSetup, Policy};
use super::workload::{WORKLOADS, named};
use crate::words;

fn config(pcpus: usize, vms: usize, vcpus: usize, workload: &str, policy: Policy) -> Config {
    Config {
        pcpus,
        vms,
        vcpus,
        phases: vec![(0.0, named(workload).unwrap())],
        policy,
        seconds: 0.02,
        warm_up: 0.1,
        samples: 4,
        ..Config::default()
    }
}

fn run(config: Config) -> Report {
    run::run(config, &ProgressBar::hidden())
}

const APPLE: Policy = Policy::Apple(AppleSetup { epoch: 50, ..AppleSetup::PAPER });
const POLICIES: [Policy; 4] = [Policy::Fixed(2048), Policy::Kvm, APPLE, Policy::Off];

#[test]
fn the_same_seed_gives_the_same_result() {
    for policy in POLICIES {
        let json =
            |seed| ui::output::json(&run(Config { seed, ..config(3, 2, 4, "dbench", policy) }));
        assert_eq!(json(1), json(1));
        assert_ne!(json(1), json(2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Every cycle of every CPU is accounted for exactly once. Locks themselves assert that they
    /// have one holder.
    #[test]
    fn time_adds_up(pcpus in 1usize..6, vms in 1usize..4, vcpus in 1usize..6, w in 0..WORKLOADS.len(), p in 0..4usize,
                    other in 0..WORKLOADS.len(), seed in 0u64.., stacked in any::<bool>()) {
        let mut config = config(pcpus, vms, vcpus, WORKLOADS[w].name, POLICIES[p]);
        config.phases.push((0.01, &WORKLOADS[other]));
        (config.seed, config.stacked, config.warm_up) = (seed, stacked, 0.0);
        let total = (config.seconds * 1e6) as u64 * config.mhz * pcpus as u64;
        let report = run(config);
        let t = &report.cpu_cycles;
        prop_assert_eq!(words::sum(t), total);
        prop_assert!(report.vms.iter().all(|vm| vm.inefficiency <= 1.0 && vm.yields_successful <= vm.yields_tried));
        prop_assert!(report.throughput > 0.0);
    }
}

#[test]
fn without_overcommitment_nobody_is_yielded_to() {
    for policy in POLICIES {
        let report = run(config(8, 1, 8, "ticket", policy));
        let vm = &report.vms[0];
        assert_eq!((vm.yields_tried, vm.yields_successful), (0, 0));
        assert_eq!(vm.ple_exits > 0, policy != Policy::Off);
    }
}

#[test]
fn an_idle_cpu_takes_from_a_busy_one() {
    let report = run(Config { stacked: true, ..config(4, 1, 4, "kernbench", Policy::Off) });
    let t = &report.cpu_cycles;
    assert!(t.idle * 50 < words::sum(t), "{t:?}");
}

/// A host for the test to drive, with one VM of 5 vCPUs on 1 CPU: vCPU 0 runs and has just had a
/// PLE exit.
fn spinning() -> Host {
    let mut host =
        Host::new(Config { stacked: true, ..config(1, 1, 5, "ticket", Policy::Fixed(512)) });
    while host.cpus[0].queue.current != Some(0) {
        host.schedule(0, Cause::Scheduler);
    }
    for id in 1..5 {
        let vcpu = &mut host.vcpus[id];
        (vcpu.preempted, vcpu.ready, vcpu.in_kernel) = (true, true, true);
    }
    host.cpus[0].state = State::Exit;
    host.vms[0].last_boosted = 0;
    host
}

/// Returns the vCPU to which vCPU 0 yields.
fn boosted(host: &mut Host) -> Option<usize> {
    let before = host.vms[0].stats.yielded;
    host.on_spin(0, 0);
    (host.vms[0].stats.yielded > before).then_some(host.vms[0].last_boosted)
}

#[test]
fn yields_go_round() {
    for last in 0..5 {
        let mut host = spinning();
        host.vms[0].last_boosted = last;
        // The search starts after the last one, and skips the yielder.
        assert_eq!(boosted(&mut host), Some([1, 2, 3, 4, 1][last]));
    }
}

#[test]
fn one_preempted_in_user_mode_is_not_a_candidate() {
    let mut host = spinning();
    host.vcpus[1].in_kernel = false;
    // A woken vCPU, which was not preempted, is a candidate.
    (host.vcpus[2].in_kernel, host.vcpus[2].preempted) = (false, false);
    assert_eq!(boosted(&mut host), Some(2));
}

#[test]
fn one_that_is_not_ready_is_not_a_candidate() {
    let mut host = spinning();
    host.vcpus[1].ready = false;
    host.vcpus[2].ready = false;
    assert_eq!(boosted(&mut host), Some(3));
}

#[test]
fn one_that_spins_is_passed_over_every_other_time() {
    let mut host = spinning();
    host.vcpus[1].in_spin_loop = true;
    assert_eq!(boosted(&mut host), Some(2));
    assert!(host.vcpus[1].dy_eligible, "next time it is");

    let mut host = spinning();
    (host.vcpus[1].in_spin_loop, host.vcpus[1].dy_eligible) = (true, true);
    assert_eq!(boosted(&mut host), Some(1));
}

#[test]
fn who_finds_nobody_goes_on_spinning() {
    let mut host = spinning();
    host.vcpus.iter_mut().for_each(|v| v.ready = false);
    assert_eq!(boosted(&mut host), None);
    assert_eq!((host.cpus[0].state, host.cpus[0].queue.current), (State::Guest, Some(0)));
    assert!(!host.vcpus[0].in_spin_loop);
}

#[test]
fn who_yields_is_in_its_spin_loop_until_it_runs_again() {
    let mut host = spinning();
    assert_eq!(boosted(&mut host), Some(1));
    assert_eq!(host.cpus[0].queue.current, Some(1), "the target is next");
    let me = &host.vcpus[0];
    assert!(me.in_spin_loop && me.ready && me.preempted);
    host.schedule_out(0);
    while host.cpus[0].queue.current != Some(0) {
        host.schedule(0, Cause::Scheduler);
        host.cpus[0].queue.yield_current(&mut host.entities);
    }
    host.enter(0, 0);
    assert!(!host.vcpus[0].in_spin_loop);
}

#[test]
fn tries_are_limited_where_yields_are_pointless() {
    // Each vCPU is alone on its CPU, and marked as ready although it runs: yield_to() is pointless.
    let mut host = Host::new(config(5, 1, 5, "ticket", Policy::Fixed(512)));
    let cpu = host.vcpus[0].cpu;
    host.vcpus.iter_mut().for_each(|v| (v.ready, v.preempted, v.in_kernel) = (true, true, true));
    host.cpus[cpu].state = State::Exit;
    host.on_spin(cpu, 0);
    assert_eq!((host.vms[0].stats.tried, host.vms[0].stats.yielded), (3, 0));
}

#[test]
fn kvms_window_grows_with_exits_and_shrinks_when_scheduled_in() {
    let mut host = Host::new(Config { stacked: true, ..config(1, 1, 2, "ticket", Policy::Kvm) });
    let me = host.cpus[0].queue.current.unwrap();
    host.ple_exit(0, me);
    host.ple_exit(0, me);
    assert_eq!(host.window(me), Some(16_384));
    host.schedule_out(0);
    host.cpus[0].queue.yield_current(&mut host.entities);
    host.schedule(0, Cause::Scheduler);
    assert_ne!(host.cpus[0].queue.current, Some(me));
    assert_eq!(host.window(me), Some(16_384), "only when it comes back");
    while host.cpus[0].queue.current != Some(me) {
        host.cpus[0].queue.yield_current(&mut host.entities);
        host.schedule(0, Cause::Scheduler);
    }
    assert_eq!(host.window(me), Some(4096));
}

#[test]
fn a_lock_goes_to_one_that_spins_at_once() {
    let mut host = Host::new(config(2, 1, 2, "ticket", Policy::Off));
    let (a, b) = (0, 1);
    assert!(host.vms[0].locks[0].acquire(a));
    assert!(!host.vms[0].locks[0].acquire(b));
    host.vcpus[a].doing = Doing::Critical { lock: 0, left: 0 };
    host.vcpus[b].doing = Doing::Spin { lock: 0 };
    host.cpus.iter_mut().for_each(|c| c.state = State::Guest);
    host.advance(host.vcpus[a].cpu, a);
    assert!(matches!(host.vcpus[b].doing, Doing::Critical { .. }));
    assert!(matches!(host.vcpus[a].doing, Doing::Outside { .. }));
}
