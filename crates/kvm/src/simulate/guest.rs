//! Actions of running vCPUs: operations, locks, barriers, and halting.

use super::events::Event;
use super::host::{Doing, Host, State, cost};
use super::lock::{Kind, Lock};
use super::workload::about;

/// KVM's halt_poll_ns, and the first step of a vCPU's poll window.
const HALT_POLL_US: u64 = 200;
const HALT_POLL_FIRST_US: u64 = 10;

impl Host {
    /// Enter the guest: the current vCPU of this CPU continues.
    pub(super) fn enter(&mut self, cpu: usize, id: usize) {
        self.cpus[cpu].state = State::Guest;
        let vcpu = &mut self.vcpus[id];
        vcpu.in_spin_loop = false;
        vcpu.dy_eligible = false;
        vcpu.spun = 0;
        if let Doing::Spin { lock } = vcpu.doing {
            let vm = vcpu.vm;
            if self.vms[vm].locks[lock].look(id) {
                self.hold(id, lock);
            }
        }
        self.arm(cpu);
    }

    /// Finish a part of the vCPU's work, and start the next one.
    pub(super) fn advance(&mut self, cpu: usize, id: usize) {
        let vm = self.vcpus[id].vm;
        match self.vcpus[id].doing {
            Doing::Outside { left: 0 } => {
                let (first, locks) = (self.first_lock(), self.workload().locks);
                let lock = first + self.vcpus[id].random.usize(..locks);
                if self.vms[vm].locks[lock].acquire(id) {
                    self.hold(id, lock);
                } else {
                    self.vcpus[id].doing = Doing::Spin { lock };
                    self.vcpus[id].spun = 0;
                }
            }
            Doing::Critical { lock, left: 0 } => {
                self.release(id, lock);
                self.vms[vm].stats.operations += 1;
                self.vcpus[id].operations += 1;
                if self.rests(cpu, id) {
                    return;
                }
                self.vcpus[id].doing = self.outside(id);
            }
            // The event was for the end of the slice, and no other vCPU waits for the CPU any more.
            _ => {}
        }
        self.arm(cpu);
    }

    pub(super) fn outside(&mut self, id: usize) -> Doing {
        let mean = self.workload().outside;
        Doing::Outside { left: about(mean, &mut self.vcpus[id].random) }
    }

    /// Begin the critical section, after the transfer of the lock's word.
    fn hold(&mut self, id: usize, lock: usize) {
        let vm = &self.vms[self.vcpus[id].vm];
        let contenders = match vm.locks[lock].kind {
            Kind::Queue => 0,
            _ => vm.locks[lock].waiters().filter(|&w| self.spins_now(w, lock)).count(),
        };
        let transfer = cost::HANDOVER + cost::CONTENDER * contenders as u64;
        let mean = self.workload().critical;
        let left = transfer + about(mean, &mut self.vcpus[id].random);
        self.vcpus[id].spun = 0;
        self.vcpus[id].doing = Doing::Critical { lock, left };
    }

    fn spins_now(&self, id: usize, lock: usize) -> bool {
        let cpu = &self.cpus[self.vcpus[id].cpu];
        cpu.state == State::Guest
            && cpu.queue.current == Some(id)
            && self.vcpus[id].doing == Doing::Spin { lock }
    }

    fn release(&mut self, id: usize, lock: usize) {
        let vm = self.vcpus[id].vm;
        let next = match (self.vms[vm].locks[lock].release(id), self.vms[vm].locks[lock].kind) {
            (None, Kind::Ttas) => {
                // Any waiter that spins in the guest just now may win.
                let running: Vec<usize> = self.vms[vm].locks[lock]
                    .waiters()
                    .filter(|&w| self.spins_now(w, lock))
                    .collect();
                self.vcpus[id].random.choice(&running).copied()
            }
            (next, _) => next,
        };
        // A waiter that does not run takes the lock when it is entered.
        let Some(next) = next.filter(|&n| self.spins_now(n, lock)) else { return };
        let cpu = self.vcpus[next].cpu;
        self.charge(cpu);
        if self.vms[vm].locks[lock].look(next) {
            self.hold(next, lock);
        }
        self.arm(cpu);
    }

    /// Halt the vCPU if it has to wait at a barrier or for an outside event before its next
    /// operation. Returns whether it halts.
    fn rests(&mut self, cpu: usize, id: usize) -> bool {
        let workload = self.workload();
        let vm = self.vcpus[id].vm;
        if workload.barrier.is_some_and(|every| self.vcpus[id].operations.is_multiple_of(every)) {
            if self.vms[vm].arrived.len() + 1 == self.config.vcpus {
                self.open_barrier(vm);
                return false;
            }
            self.vms[vm].arrived.push(id);
            self.halt(cpu, id);
            return true;
        }
        let Some((every, time)) = workload.sleep else { return false };
        let random = &mut self.vcpus[id].random;
        if random.u32(..every) != 0 {
            return false;
        }
        let at = self.now + about(time, random);
        self.events.push(at, Event::Wake(id), self.vcpus[id].generation);
        self.halt(cpu, id);
        true
    }

    /// Send each waiting vCPU an interrupt, one after the other.
    fn open_barrier(&mut self, vm: usize) {
        for (i, id) in std::mem::take(&mut self.vms[vm].arrived).into_iter().enumerate() {
            let at = self.now + cost::INTERRUPT * (i as u64 + 1);
            self.events.push(at, Event::Wake(id), self.vcpus[id].generation);
        }
    }

    /// HLT: the host polls for a while, unless another vCPU is queued on this CPU.
    fn halt(&mut self, cpu: usize, id: usize) {
        self.vcpus[id].doing = Doing::Halted;
        self.vcpus[id].halted = self.now;
        let poll = if self.cpus[cpu].queue.queued.is_empty() { self.vcpus[id].poll } else { 0 };
        self.busy(cpu, State::Poll, poll);
    }

    /// Update the vCPU's poll window after a halt, by KVM's rule (virt/kvm/kvm_main.c).
    pub(super) fn learn_poll(&mut self, id: usize) {
        let most = self.cycles(HALT_POLL_US);
        let first = self.cycles(HALT_POLL_FIRST_US);
        let halted = self.now - self.vcpus[id].halted;
        let poll = &mut self.vcpus[id].poll;
        if halted > most {
            *poll = 0;
        } else if halted > *poll {
            *poll = (*poll * 2).clamp(first, most);
        }
    }

    /// Change all guests to another workload, each with its next operation.
    pub(super) fn change(&mut self, phase: usize) {
        self.phase = phase;
        let workload = self.workload();
        for vm in 0..self.vms.len() {
            self.vms[vm].locks.extend((0..workload.locks).map(|_| Lock::new(workload.kind)));
            self.open_barrier(vm);
        }
    }

    /// Index of the workload's first lock. Locks of earlier workloads remain for their holders.
    fn first_lock(&self) -> usize {
        self.config.phases[..self.phase].iter().map(|(_, w)| w.locks).sum()
    }
}
