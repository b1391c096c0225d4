//! Load and attach the scheduler of bpf/scx_lissom.bpf.c, and access its maps.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Struct, Var};
use libbpf_rs::{Link, Map, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, ProgramMut};
use zerocopy::FromBytes as _;

use super::kernel::Types;
use super::layout::{Config, Counts, Exit, Operations, State, Trial};
use super::{branches, maps, vcpus};
use os::sched_ext::SchedExt;

/// Aligned for libbpf, which reads structures in place.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/scx_lissom.bpf.o")));

/// The kernel's structure of a scheduler's operations, and the program's variable of that type.
const OPERATIONS: (&str, &str) = ("sched_ext_ops", "lissom_ops");

/// Name of the running scheduler in sysfs.
pub const NAME: &str = "lissom";

/// `SCX_OPS_SWITCH_PARTIAL`
const SWITCH_PARTIAL: u64 = 1 << 3;

/// Longest wait for the scheduler to end. The kernel takes milliseconds, longer with many threads.
const END: Duration = Duration::from_secs(10);

/// The section of the tunables. libbpf puts the object's name before it.
const CONSTANTS: &str = ".rodata";

/// The section of the variable `uei`.
const EXIT: &str = ".data.uei";

pub const STATE: &str = "scx_state";
pub const COUNTS: &str = "scx_counts";
pub const SITES: &str = "scx_sites";
pub const CANDIDATES: &str = "scx_candidates";
pub const COUNTERS: &str = "scx_counters";
pub const SCANS: &str = "scx_scans";
pub const AUDITS: &str = "scx_audits";

/// The compiled BPF object.
pub fn object() -> &'static [u8] {
    &OBJECT.0
}

/// Returns the first operation that the program uses and this kernel lacks.
pub fn missing_operation(types: &Types) -> anyhow::Result<Option<String>> {
    let own = Btf::from_raw(NAME, object())?.context("the program has no types")?;
    let operations: Struct =
        own.type_by_name(OPERATIONS.0).context("the program has no operations")?;
    let names = operations.iter().filter_map(|m| m.name.map(|n| n.to_string_lossy().into_owned()));
    Ok(names.into_iter().find(|name| !types.has_member(OPERATIONS.0, name)))
}

pub struct Scheduler {
    link: Option<Link>,
    vcpu_link: Option<Link>,
    /// Err: why vCPU threads are not detected when their guests spin. Final after `attach`.
    pub vcpus: Result<(), String>,
    /// Err: why branch records are not read, whatever the CPU supports.
    pub branches: Result<(), String>,
    object: Object,
}

impl Scheduler {
    /// Load the programs into the kernel, without starting the scheduler. timeout: the kernel ends
    /// the scheduler if a runnable thread does not run for this long.
    pub fn load(
        config: &Config,
        timeout: Duration,
        with_branches: bool,
    ) -> anyhow::Result<Scheduler> {
        if std::env::var_os("LISSOM_VERBOSE").is_none() {
            libbpf_rs::set_print(None);
        }
        let mut vcpus = match config.sample_ns {
            0 => Err("busy-wait detection is off".into()),
            _ => vcpus::check(),
        };
        let mut branches =
            if with_branches { Ok(()) } else { Err("branch records were not requested".into()) };
        let mut loaded = load(config, timeout, vcpus.is_ok(), with_branches);
        // The kernel may not support tracing the function: load without it.
        if vcpus.is_ok()
            && let Err(error) = &loaded
        {
            vcpus = Err(format!("this kernel cannot trace {}: {error:#}", vcpus::FUNCTION));
            loaded = load(config, timeout, false, with_branches);
        }
        // The kernel may reject the programs for branch records: load without them.
        if with_branches && let Err(error) = &loaded {
            branches = Err(format!("the kernel rejected the programs: {error:#}"));
            loaded = load(config, timeout, vcpus.is_ok(), false);
        }
        let object = loaded.map_err(|e| {
            anyhow!("the kernel rejected the scheduler: {e:#} (LISSOM_VERBOSE=1 shows details)")
        })?;
        Ok(Scheduler { link: None, vcpu_link: None, vcpus, branches, object })
    }

    /// Start scheduling, until `detach`, the end of this process, or an error in the scheduler.
    pub fn attach(&mut self, state: &State) -> anyhow::Result<()> {
        maps::put(&self.map(STATE)?, &0u32, state, MapFlags::ANY)?;
        let link = self
            .object
            .maps_mut()
            .find(|m| m.name() == OPERATIONS.1)
            .context("the scheduler is missing")?
            .attach_struct_ops();
        self.link = Some(link.map_err(|error| {
            let why =
                self.exit().map_or(String::new(), |e| format!(": {} {}", e.reason, e.message));
            anyhow!("the kernel did not start the scheduler{why}: {error} (dmesg may have details)")
        })?);
        let state = SchedExt::state_now();
        if state != "enabled" {
            match self.exit() {
                Some(e) => bail!("the scheduler ended at once: {} {}", e.reason, e.message),
                None => bail!("sched_ext is {state} after the start"),
            }
        }
        if self.vcpus.is_ok() {
            let link = self.program(vcpus::PROGRAM)?.attach();
            let why = |e| format!("this kernel cannot trace {}: {e}", vcpus::FUNCTION);
            (self.vcpu_link, self.vcpus) = match link {
                Ok(link) => (Some(link), Ok(())),
                Err(e) => (None, Err(why(e))),
            };
        }
        Ok(())
    }

    /// End the scheduler, and wait until the kernel's own scheduler has all threads again.
    pub fn detach(&mut self) -> anyhow::Result<()> {
        self.vcpu_link = None;
        self.link = None;
        wait_until_off()
    }

    /// Returns how the scheduler ended, or None if it runs or never ran.
    pub fn exit(&self) -> Option<Exit> {
        let map = self.map(EXIT).ok()?;
        Exit::parse(&map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??)
    }

    /// Results of the trial of branch records.
    pub fn trial(&self) -> anyhow::Result<Trial> {
        maps::get(&self.map(".bss.trial")?, &0u32).context("the trial is missing")
    }

    pub fn counts(&self) -> anyhow::Result<Counts> {
        counts(&self.map(COUNTS)?)
    }

    /// The counts of each CPU, indexed by its number.
    pub fn counts_of_cpus(&self) -> anyhow::Result<Vec<Counts>> {
        of_cpus(&self.map(COUNTS)?)
    }

    pub fn map(&self, name: &str) -> anyhow::Result<Map<'_>> {
        self.object
            .maps()
            .find(|m| m.name() == name)
            .with_context(|| format!("the map {name} is missing"))
    }

    /// A handle of the map that may outlive the borrow of the scheduler.
    pub fn handle(&self, name: &str) -> anyhow::Result<MapHandle> {
        Ok(MapHandle::try_from(&self.map(name)?)?)
    }

    pub fn program(&self, name: &str) -> anyhow::Result<ProgramMut<'_>> {
        self.object
            .progs_mut()
            .find(|p| p.name() == name)
            .with_context(|| format!("the program {name} is missing"))
    }
}

fn load(
    config: &Config,
    timeout: Duration,
    with_vcpus: bool,
    with_branches: bool,
) -> anyhow::Result<Object> {
    let mut object = ObjectBuilder::default().open_memory(object())?;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.ends_with(CONSTANTS) {
            let value = map.initial_value_mut().context("a map is missing")?;
            set_tunables(value, config)?;
        } else if name == OPERATIONS.1 {
            let value = map.initial_value_mut().context("a map is missing")?;
            set_operations(value, config.is_partial != 0, timeout)?;
        }
    }
    for mut program in object.progs_mut() {
        if program.name() == vcpus::PROGRAM {
            program.set_autoload(with_vcpus);
        } else if branches::PROGRAMS.iter().any(|name| program.name() == *name) {
            program.set_autoload(with_branches);
        }
    }
    Ok(object.load()?)
}

/// The sums over all CPUs.
pub fn counts(map: &impl MapCore) -> anyhow::Result<Counts> {
    Ok(of_cpus(map)?.into_iter().fold(Counts::default(), Counts::plus))
}

fn of_cpus(map: &impl MapCore) -> anyhow::Result<Vec<Counts>> {
    let cpus = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)?;
    let counts = |bytes: Vec<u8>| Counts::read_from_bytes(&bytes).unwrap_or_default();
    Ok(cpus.context("the counts are missing")?.into_iter().map(counts).collect())
}

/// Wait until no sched_ext scheduler runs. Fails after END.
pub fn wait_until_off() -> anyhow::Result<()> {
    let end = Instant::now() + END;
    loop {
        let state = SchedExt::state_now();
        if state == "disabled" {
            return Ok(());
        }
        if Instant::now() > end {
            bail!(
                "sched_ext is still {state} after {} s (SysRq-S ends a scheduler by force)",
                END.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Set the variables of bpf/scx_tunables.bpf.h that have an option. `constants` has the variables
/// of the section CONSTANTS.
fn set_tunables(constants: &mut [u8], config: &Config) -> anyhow::Result<()> {
    let own = Btf::from_raw(NAME, object())?.context("the program has no types")?;
    let section: DataSec = own.type_by_name(CONSTANTS).context("the program has no constants")?;
    for (name, value) in Config::NAMES.iter().zip(config.values()) {
        // Only the tool's perf events use the interval of scans.
        if *name == "sample_ns" {
            continue;
        }
        let is_it =
            |id| own.type_by_id::<Var>(id).is_some_and(|v| v.name().is_some_and(|n| n == *name));
        let variable = section
            .iter()
            .find(|v| is_it(v.ty))
            .with_context(|| format!("the program has no variable {name}"))?;
        let at = variable.offset as usize;
        let field = constants.get_mut(at..at + variable.size).context("a map is too small")?;
        // Little endian: a bool is the first byte.
        field.copy_from_slice(&value.to_le_bytes()[..variable.size]);
    }
    Ok(())
}

/// Set the timeout and, if `is_partial`, the flag in the program's variable.
fn set_operations(variable: &mut [u8], is_partial: bool, timeout: Duration) -> anyhow::Result<()> {
    let operations = Operations::mut_from_bytes(variable)
        .map_err(|_| anyhow!("the operations have another size"))?;
    operations.timeout_ms = u32::try_from(timeout.as_millis())?;
    if is_partial {
        operations.flags |= SWITCH_PARTIAL;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_by_name() {
        let mut open = ObjectBuilder::default().open_memory(object()).expect("an object");
        let ours = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(CONSTANTS);
        let mut map = open.maps_mut().find(|m| ours(m.name())).expect("the constants");
        let value = map.initial_value_mut().expect("a value");
        let before = value.to_vec();
        let defaults = Config { slice_ns: 3_000_000, park_ns: 20_000_000, ..Config::default() };
        set_tunables(value, &defaults).expect("all are there");
        assert_eq!(value, before);
        let config = Config { slice_ns: 3_000_001, is_partial: 1, made_up: 1, ..defaults };
        set_tunables(value, &config).expect("all are there");
        let changed: Vec<u8> =
            (0..before.len()).filter(|&i| before[i] != value[i]).map(|i| value[i]).collect();
        assert_eq!(changed.len(), 3, "{changed:?}");
        assert_eq!(changed.iter().filter(|&&byte| byte == 1).count(), 2, "{changed:?}");
    }

    #[test]
    fn operations() {
        let mut open = ObjectBuilder::default().open_memory(object()).expect("an object");
        let mut map = open.maps_mut().find(|m| m.name() == OPERATIONS.1).expect("the operations");
        let value = map.initial_value_mut().expect("a variable");
        let flags = Operations::read_from_bytes(value).expect("as long").flags;
        set_operations(value, true, Duration::from_secs(7)).expect("as long");
        let set = Operations::read_from_bytes(value).expect("as long");
        assert_eq!((set.flags, set.timeout_ms), (flags | SWITCH_PARTIAL, 7000));
    }
}
