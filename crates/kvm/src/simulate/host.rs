//! The simulated machine: physical CPUs with their run queues, vCPUs, VMs, and their events.

use indicatif::ProgressBar;

use super::events::{Event, Events};
use super::lock::Lock;
use super::scheduler::{Entity, Rule, RunQueue};
use super::stats::{Point, Stats, Times};
use super::window::{self, Controller, Policy};
use super::workload::{WORKLOADS, Workload, about};

/// Costs of the host's actions, in cycles. docs/operate/kvm-simulation.md has the sources of the
/// numbers.
pub(super) mod cost {
    /// From a VM exit to the next entry of the same vCPU, including the handling of the exit.
    pub const EXIT: u64 = 2200;
    /// Additional cost if another vCPU is entered.
    pub const SWITCH: u64 = 1800;
    /// Transfer of a lock from one CPU to another.
    pub const HANDOVER: u64 = 80;
    /// Additional cost of a transfer for each further CPU that spins on the same word.
    pub const CONTENDER: u64 = 20;
    /// From sending an interrupt to waking the vCPU.
    pub const INTERRUPT: u64 = 2000;
}

/// Slice of the host's scheduler, and the time between two balances of a CPU's load.
const SLICE_US: u64 = 3000;
const BALANCE_US: u64 = 8000;

#[derive(Clone, Debug)]
pub struct Config {
    /// Clock of the physical CPUs.
    pub mhz: u64,
    pub scheduler: Rule,
    pub pcpus: usize,
    pub vms: usize,
    pub vcpus: usize,
    /// Workloads of the guests, each with the second at which it begins.
    pub phases: Vec<(f64, &'static Workload)>,
    pub policy: Policy,
    pub seconds: f64,
    /// Part of the time at the begin that is not counted.
    pub warm_up: f64,
    pub seed: u64,
    /// True: all vCPUs of a VM start on one physical CPU. False: they are spread over all CPUs.
    pub stacked: bool,
    /// Number of points to record of the path over time.
    pub samples: u32,
    /// Whether to record the first VM's window after each epoch of 1000 PLE exits.
    pub epochs: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mhz: 2000,
            scheduler: Rule::Eevdf,
            pcpus: 16,
            vms: 4,
            vcpus: 16,
            phases: vec![(0.0, &WORKLOADS[0])],
            policy: Policy::Kvm,
            seconds: 1.0,
            warm_up: 0.2,
            seed: 1,
            stacked: false,
            samples: 0,
            epochs: false,
        }
    }
}

/// State of a guest's thread. Each vCPU has one thread. `left`: cycles until it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Doing {
    Outside { left: u64 },
    Critical { lock: usize, left: u64 },
    Spin { lock: usize },
    Halted,
}

impl Default for Doing {
    fn default() -> Doing {
        Doing::Outside { left: 1 }
    }
}

#[derive(Default)]
pub(super) struct Vcpu {
    pub vm: usize,
    pub doing: Doing,
    /// The physical CPU on which it runs or is queued, or ran last.
    pub cpu: usize,
    pub random: fastrand::Rng,
    /// Cycles of the current spin since the last VM entry.
    pub spun: u64,
    pub window: u32,
    /// The flags of the same names in struct kvm_vcpu.
    pub preempted: bool,
    pub ready: bool,
    pub in_spin_loop: bool,
    pub dy_eligible: bool,
    pub in_kernel: bool,
    pub operations: u32,
    /// Halt polling: the window in cycles, and the time of the last halt.
    pub poll: u64,
    pub halted: u64,
    pub generation: u32,
}

#[derive(Default)]
pub(super) struct Vm {
    pub locks: Vec<Lock>,
    pub last_boosted: usize,
    pub controller: Option<Controller>,
    /// vCPUs that wait at the barrier.
    pub arrived: Vec<usize>,
    pub stats: Stats,
    /// Cycles since the start, for APPLE.
    pub wasted: u64,
    pub time: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum State {
    #[default]
    Idle,
    Guest,
    /// Handling a PLE exit.
    Exit,
    /// Entering the current vCPU.
    Enter(Cause),
    /// Polling for the current vCPU, which has halted.
    Poll,
}

/// Reason for a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cause {
    Scheduler,
    /// The CPU's own vCPU, of this VM, had a PLE exit and yielded.
    Yield(usize),
    /// A vCPU of this VM yielded on another CPU, to a vCPU that is queued here.
    Remote(usize),
}

#[derive(Default)]
pub(super) struct Cpu {
    pub queue: RunQueue,
    pub state: State,
    /// End of the state, except of State::Guest.
    pub until: u64,
    /// Time up to which the CPU's cycles are charged.
    since: u64,
    pub slice_over: bool,
    /// The CPU has to pick again as soon as it can.
    pub reschedule: Option<Cause>,
    generation: u32,
    pub times: Times,
}

#[derive(Default)]
pub struct Host {
    pub(super) config: Config,
    pub(super) now: u64,
    pub(super) events: Events,
    pub(super) cpus: Vec<Cpu>,
    pub(super) entities: Vec<Entity>,
    pub(super) vcpus: Vec<Vcpu>,
    pub(super) vms: Vec<Vm>,
    pub(super) phase: usize,
    pub(super) points: Vec<Point>,
    pub(super) epochs: Vec<u32>,
    pub(super) warm: u64,
}

impl Host {
    pub fn new(config: Config) -> Host {
        let mut random = fastrand::Rng::with_seed(config.seed);
        let slice = SLICE_US * config.mhz;
        let cpus = (0..config.pcpus)
            .map(|_| Cpu { queue: RunQueue::new(slice, config.scheduler), ..Cpu::default() });
        let controller = || match config.policy {
            Policy::Apple(setup) => Some(Controller::new(setup)),
            _ => None,
        };
        let vms = (0..config.vms).map(|_| Vm { controller: controller(), ..Vm::default() });
        let total = config.vms * config.vcpus;
        let vcpus = (0..total).map(|id| Vcpu {
            vm: id / config.vcpus,
            random: random.fork(),
            window: window::DEFAULT,
            ..Vcpu::default()
        });
        let mut host = Host {
            cpus: cpus.collect(),
            vms: vms.collect(),
            vcpus: vcpus.collect(),
            entities: vec![Entity::default(); total],
            config,
            ..Host::default()
        };
        host.begin(&mut random);
        host
    }

    fn begin(&mut self, random: &mut fastrand::Rng) {
        self.change(0);
        // The same number on each CPU, in random order, as if started one after the other.
        let mut order: Vec<usize> = (0..self.vcpus.len()).collect();
        random.shuffle(&mut order);
        for (i, &id) in order.iter().enumerate() {
            let cpu = match self.config.stacked {
                true => self.vcpus[id].vm % self.cpus.len(),
                false => i % self.cpus.len(),
            };
            self.vcpus[id].cpu = cpu;
            self.vcpus[id].doing = self.outside(id);
            self.cpus[cpu].queue.enqueue(&mut self.entities, id);
        }
        for cpu in 0..self.cpus.len() {
            self.schedule(cpu, Cause::Scheduler);
            let phase = self.cycles(BALANCE_US) * cpu as u64 / self.cpus.len() as u64;
            self.events.push(phase, Event::Balance(cpu), 0);
        }
        let second = self.second();
        let Config { seconds, warm_up, samples, .. } = self.config;
        self.events.push((seconds * warm_up * second) as u64, Event::Warm, 0);
        for (i, (at, _)) in self.config.phases.iter().enumerate().skip(1) {
            self.events.push((at * second) as u64, Event::Change(i), 0);
        }
        for i in 1..=samples {
            let part = f64::from(i) / f64::from(samples);
            self.events.push((seconds * part * second) as u64, Event::Sample, 0);
        }
    }

    pub(super) fn cycles(&self, us: u64) -> u64 {
        us * self.config.mhz
    }

    /// Cycles of a second.
    pub(super) fn second(&self) -> f64 {
        1e6 * self.config.mhz as f64
    }

    /// Run to the end, which advances the bar by 1000.
    pub fn run(&mut self, bar: &ProgressBar) {
        let end = (self.config.seconds * 1e6 * self.config.mhz as f64) as u64;
        let mut shown = 0;
        while let Some((at, event, generation)) = self.events.pop() {
            if at > end {
                break;
            }
            match event {
                Event::Cpu(cpu) if self.cpus[cpu].generation != generation => continue,
                Event::Wake(id) if self.vcpus[id].generation != generation => continue,
                _ => self.now = at,
            }
            match event {
                Event::Cpu(cpu) => self.cpu_event(cpu),
                Event::Wake(id) => self.wake(id),
                Event::Balance(cpu) => {
                    self.balance(cpu);
                    let done = 1000 * self.now / end;
                    bar.inc(done - shown);
                    shown = done;
                }
                Event::Warm => self.count_from_now(),
                Event::Change(phase) => self.change(phase),
                Event::Sample => self.sample(),
            }
        }
        bar.inc(1000 - shown);
        self.now = end;
        self.charge_all();
    }

    fn count_from_now(&mut self) {
        self.charge_all();
        self.warm = self.now;
        self.vms.iter_mut().for_each(|vm| vm.stats = Stats::default());
        self.cpus.iter_mut().for_each(|cpu| cpu.times = Times::default());
    }

    pub(super) fn charge_all(&mut self) {
        (0..self.cpus.len()).for_each(|cpu| self.charge(cpu));
    }

    /// Charge the CPU's time up to now to its state, its vCPU and the VM.
    pub(super) fn charge(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let time = self.now - c.since;
        c.since = self.now;
        if time == 0 {
            return;
        }
        let Some(id) = c.queue.current else {
            c.times.idle += time;
            return;
        };
        c.slice_over |= c.queue.ran(&mut self.entities, time);
        let vcpu = &mut self.vcpus[id];
        let vm = &mut self.vms[vcpu.vm];
        vm.time += time;
        vm.stats.cpu += time;
        match c.state {
            State::Guest => match &mut vcpu.doing {
                Doing::Outside { left } | Doing::Critical { left, .. } => {
                    *left -= time;
                    c.times.useful += time;
                }
                Doing::Spin { .. } => {
                    vcpu.spun += time;
                    c.times.spin += time;
                    vm.stats.spin += time;
                }
                Doing::Halted => unreachable!("a halted vCPU is not in the guest"),
            },
            State::Exit => {
                c.times.ple += time;
                vm.stats.ple += time;
                vm.wasted += time;
            }
            State::Enter(Cause::Yield(yielder)) => {
                c.times.ple += time;
                // The time is the yielder's, whichever vCPU is entered.
                vm.time -= time;
                vm.stats.cpu -= time;
                let vm = &mut self.vms[yielder];
                vm.time += time;
                vm.stats.cpu += time;
                vm.stats.ple += time;
                vm.wasted += time;
            }
            State::Enter(Cause::Remote(yielder)) => {
                c.times.remote += time;
                let vm = &mut self.vms[yielder];
                vm.stats.remote += time;
                if vm.controller.as_ref().is_some_and(|c| c.setup.counts_remote) {
                    vm.wasted += time;
                }
            }
            State::Enter(Cause::Scheduler) => c.times.switch += time,
            State::Poll => c.times.poll += time,
            State::Idle => unreachable!("an idle CPU has no vCPU"),
        }
    }

    /// Schedule the next event of this CPU, as far as it depends on this CPU alone.
    pub(super) fn arm(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        let at = match (c.state, c.queue.current) {
            (State::Idle, _) | (_, None) => return self.disarm(cpu),
            (State::Guest, Some(id)) => {
                let own = match self.vcpus[id].doing {
                    Doing::Outside { left } | Doing::Critical { left, .. } => self.now + left,
                    Doing::Spin { .. } => match self.window(id) {
                        Some(window) => {
                            self.now + u64::from(window).saturating_sub(self.vcpus[id].spun)
                        }
                        None => u64::MAX,
                    },
                    Doing::Halted => unreachable!("a halted vCPU is not in the guest"),
                };
                if c.queue.queued.is_empty() {
                    own
                } else if c.slice_over {
                    self.now
                } else {
                    own.min(self.now + c.queue.left(&self.entities))
                }
            }
            _ => c.until,
        };
        self.disarm(cpu);
        if at < u64::MAX {
            self.events.push(at, Event::Cpu(cpu), self.cpus[cpu].generation);
        }
    }

    fn disarm(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        c.generation = c.generation.wrapping_add(1);
    }

    fn cpu_event(&mut self, cpu: usize) {
        self.charge(cpu);
        let c = &self.cpus[cpu];
        let Some(id) = c.queue.current else { return };
        match c.state {
            State::Guest if c.slice_over && c.queue.len() > 1 => {
                self.preempt(cpu, Cause::Scheduler)
            }
            State::Guest => match self.vcpus[id].doing {
                Doing::Spin { .. } => self.ple_exit(cpu, id),
                _ => self.advance(cpu, id),
            },
            State::Exit => self.on_spin(cpu, id),
            State::Enter(_) => match c.reschedule.filter(|_| c.queue.len() > 1) {
                Some(cause) => self.preempt(cpu, cause),
                None => self.enter(cpu, id),
            },
            State::Poll => self.block(cpu),
            State::Idle => {}
        }
    }

    /// Enter a state that lasts `mean` cycles. The length of exits and entries varies: with fixed
    /// costs, CPUs run in lockstep, and a lock's holder may never reach its guest.
    pub(super) fn busy(&mut self, cpu: usize, state: State, mean: u64) {
        let time = match (state, self.cpus[cpu].queue.current) {
            (State::Exit | State::Enter(_), Some(id)) => about(mean, &mut self.vcpus[id].random),
            _ => mean,
        };
        self.cpus[cpu].state = state;
        self.cpus[cpu].until = self.now + time;
        self.arm(cpu);
    }

    /// The scheduler's interrupt: make the CPU pick again as soon as it can.
    pub(super) fn reschedule(&mut self, cpu: usize, cause: Cause) {
        self.charge(cpu);
        match self.cpus[cpu].state {
            State::Guest => self.preempt(cpu, cause),
            State::Poll => self.block(cpu),
            State::Idle => self.schedule(cpu, cause),
            State::Exit | State::Enter(_) => self.cpus[cpu].reschedule = Some(cause),
        }
    }

    /// Take the current vCPU off its CPU although it could continue.
    fn preempt(&mut self, cpu: usize, cause: Cause) {
        self.schedule_out(cpu);
        self.schedule(cpu, cause);
    }

    /// kvm_sched_out() of a vCPU that stays runnable.
    pub(super) fn schedule_out(&mut self, cpu: usize) {
        let Some(id) = self.cpus[cpu].queue.current else { return };
        let user = self.workload().user;
        let vcpu = &mut self.vcpus[id];
        vcpu.preempted = true;
        vcpu.ready = true;
        vcpu.in_kernel = !(user && matches!(vcpu.doing, Doing::Outside { .. }));
        let vm = &mut self.vms[vcpu.vm];
        if vm.controller.as_ref().is_some_and(|c| c.setup.counts_cut) {
            vm.wasted += vcpu.spun;
        }
        vcpu.spun = 0;
    }

    /// Pick the next vCPU to run, or become idle.
    pub(super) fn schedule(&mut self, cpu: usize, cause: Cause) {
        let before = self.cpus[cpu].queue.current;
        if self.cpus[cpu].queue.len() == 0 {
            self.steal(cpu, 1);
        }
        let c = &mut self.cpus[cpu];
        c.slice_over = false;
        c.reschedule = None;
        let Some(id) = c.queue.pick(&mut self.entities) else {
            c.state = State::Idle;
            self.disarm(cpu);
            return;
        };
        let vcpu = &mut self.vcpus[id];
        vcpu.cpu = cpu;
        vcpu.ready = false;
        vcpu.preempted = false;
        // State::Exit has already charged a yielder's exit.
        let exit = if matches!(cause, Cause::Yield(_)) { 0 } else { cost::EXIT };
        let mut time = exit;
        if before != Some(id) {
            time += cost::SWITCH;
            // KVM resets the window in vmx_vcpu_load() (ple_window_shrink).
            vcpu.window = window::DEFAULT;
        }
        self.busy(cpu, State::Enter(cause), time);
    }

    /// The current vCPU sleeps: run another one.
    fn block(&mut self, cpu: usize) {
        self.cpus[cpu].queue.block(&mut self.entities);
        self.schedule(cpu, Cause::Scheduler);
    }

    /// End a vCPU's halt. A vCPU for which the host polls continues at once; any other
    /// vCPU is enqueued.
    pub(super) fn wake(&mut self, id: usize) {
        let vcpu = &mut self.vcpus[id];
        vcpu.generation = vcpu.generation.wrapping_add(1);
        self.learn_poll(id);
        self.vcpus[id].doing = self.outside(id);
        let last = self.vcpus[id].cpu;
        if self.cpus[last].queue.current == Some(id) {
            self.charge(last);
            return self.busy(last, State::Enter(Cause::Scheduler), cost::EXIT);
        }
        self.vcpus[id].ready = true;
        let idle = |c: &usize| self.cpus[*c].state == State::Idle;
        let n = self.cpus.len();
        let cpu = (0..n).map(|i| (last + i) % n).find(idle).unwrap_or(last);
        self.charge(cpu);
        self.vcpus[id].cpu = cpu;
        self.cpus[cpu].queue.enqueue(&mut self.entities, id);
        let is_free = matches!(self.cpus[cpu].state, State::Idle | State::Poll);
        if is_free || self.cpus[cpu].queue.preempts(&self.entities, id) {
            self.reschedule(cpu, Cause::Scheduler);
        } else {
            self.arm(cpu);
        }
    }

    /// Move a vCPU to this CPU from the one with the longest queue, if at least `waiting` vCPUs are
    /// queued there.
    fn steal(&mut self, cpu: usize, waiting: usize) {
        let busiest = (0..self.cpus.len())
            .filter(|&c| c != cpu)
            .max_by_key(|&c| self.cpus[c].queue.queued.len());
        let Some(from) = busiest.filter(|&c| self.cpus[c].queue.queued.len() >= waiting) else {
            return;
        };
        // The vCPU that has waited longest has the coldest cache.
        let id = self.cpus[from].queue.queued[0];
        self.charge(from);
        self.cpus[from].queue.dequeue(&mut self.entities, id);
        self.arm(from);
        self.vcpus[id].cpu = cpu;
        self.cpus[cpu].queue.enqueue(&mut self.entities, id);
    }

    fn balance(&mut self, cpu: usize) {
        self.charge(cpu);
        let mine = self.cpus[cpu].queue.len();
        self.steal(cpu, mine + 1);
        match self.cpus[cpu].state {
            State::Idle | State::Poll if !self.cpus[cpu].queue.queued.is_empty() => {
                self.reschedule(cpu, Cause::Scheduler)
            }
            _ => self.arm(cpu),
        }
        let next = self.now + self.cycles(BALANCE_US);
        self.events.push(next, Event::Balance(cpu), 0);
    }

    fn sample(&mut self) {
        self.charge_all();
        self.points.push(Point {
            seconds: self.now as f64 / self.second(),
            window: self.vms[0].controller.as_ref().map(|c| c.apple.base()),
        });
    }

    pub(super) fn workload(&self) -> &'static Workload {
        self.config.phases[self.phase].1
    }
}
