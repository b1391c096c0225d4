//! PLE exits, and the directed yields that follow them, as in KVM (kvm_vcpu_on_spin() in
//! virt/kvm/kvm_main.c, and yield_to() in the scheduler).

use super::host::{Cause, Host, State, cost};
use super::window::{self, Policy};

/// Result of yield_to().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yielded {
    Yes,
    /// The target is not queued: it runs already, or sleeps.
    No,
    /// -ESRCH: both vCPUs are alone on their CPUs, so a yield does not help.
    Pointless,
}

impl Host {
    /// The vCPU's window in cycles. None: no limit.
    pub(super) fn window(&self, id: usize) -> Option<u32> {
        match self.config.policy {
            Policy::Fixed(window) => Some(window),
            Policy::Off => None,
            Policy::Kvm => Some(self.vcpus[id].window),
            Policy::Apple(_) => {
                self.vms[self.vcpus[id].vm].controller.as_ref().map(|c| c.apple.threshold())
            }
        }
    }

    pub(super) fn ple_exit(&mut self, cpu: usize, id: usize) {
        let vcpu = &mut self.vcpus[id];
        let vm = &mut self.vms[vcpu.vm];
        vm.stats.exits += 1;
        vm.stats.wasted_spin += vcpu.spun;
        vm.wasted += vcpu.spun;
        vcpu.spun = 0;
        vcpu.window = window::grown(vcpu.window);
        let vm = vcpu.vm;
        if self.vms[vm].controller.as_mut().is_some_and(|c| c.exit()) {
            self.charge_all();
            let (wasted, time) = (self.vms[vm].wasted, self.vms[vm].time);
            if let Some(controller) = &mut self.vms[vm].controller {
                controller.end(wasted, time);
            }
        }
        if self.config.epochs && vm == 0 && self.vms[0].stats.exits.is_multiple_of(1000) {
            self.epochs.extend(self.window_of(0));
        }
        self.busy(cpu, State::Exit, cost::EXIT);
    }

    /// kvm_vcpu_on_spin(): try the VM's vCPUs by turns, starting after the one helped last.
    pub(super) fn on_spin(&mut self, cpu: usize, me: usize) {
        let vm = self.vcpus[me].vm;
        let n = self.config.vcpus;
        let first = vm * n;
        let start = self.vms[vm].last_boosted + 1;
        let mut tries = 3;
        self.vcpus[me].in_spin_loop = true;
        for i in 0..n {
            let index = (start + i) % n;
            let target = first + index;
            let vcpu = &self.vcpus[target];
            // Skip vCPUs that were preempted in user mode. Keep woken ones, which are not
            // `preempted`: they may have an interrupt to deliver.
            if target == me
                || !vcpu.ready
                || vcpu.preempted && !vcpu.in_kernel
                || !self.is_eligible(target)
            {
                continue;
            }
            self.vms[vm].stats.tried += 1;
            match self.yield_to(cpu, target) {
                Yielded::Yes => {
                    self.vms[vm].stats.yielded += 1;
                    self.vms[vm].last_boosted = index;
                    self.schedule_out(cpu);
                    return self.schedule(cpu, Cause::Yield(vm));
                }
                Yielded::No => {}
                Yielded::Pointless => {
                    tries -= 1;
                    if tries == 0 {
                        break;
                    }
                }
            }
        }
        if self.cpus[cpu].reschedule.is_some() && self.cpus[cpu].queue.len() > 1 {
            self.schedule_out(cpu);
            return self.schedule(cpu, Cause::Yield(vm));
        }
        self.enter(cpu, me);
    }

    /// kvm_vcpu_eligible_for_directed_yield(): skip a vCPU that itself spins every other time.
    fn is_eligible(&mut self, id: usize) -> bool {
        let vcpu = &mut self.vcpus[id];
        let eligible = !vcpu.in_spin_loop || vcpu.dy_eligible;
        if vcpu.in_spin_loop {
            vcpu.dy_eligible = !vcpu.dy_eligible;
        }
        eligible
    }

    fn yield_to(&mut self, cpu: usize, target: usize) -> Yielded {
        let there = self.vcpus[target].cpu;
        if self.cpus[cpu].queue.len() == 1 && self.cpus[there].queue.len() == 1 {
            return Yielded::Pointless;
        }
        if !self.cpus[there].queue.queued.contains(&target) {
            return Yielded::No;
        }
        self.charge(there);
        self.cpus[there].queue.prefer(target);
        self.cpus[cpu].queue.yield_current(&mut self.entities);
        if there != cpu {
            self.reschedule(there, Cause::Remote(self.vcpus[target].vm));
        }
        Yielded::Yes
    }
}
