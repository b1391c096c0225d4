//! `lissom doctor -- CMD`: report what a program is, and where its system calls are.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Finding;
use super::machine::version;
use super::survey::{self, LeftAlone};
use os::elf::{self, Elf, Kind};
use os::glibc::{greeting, list, listed_path, number};
use os::program;
use os::sched_ext::SchedExt;
use runtime::knobs;
use runtime::unpack;
use ui::exit::Failure;

#[derive(Serialize)]
pub struct Target {
    pub name: String,
    pub findings: Vec<Finding>,
    objects: Vec<Object>,
}

#[derive(Serialize)]
struct Object {
    path: PathBuf,
    syscalls: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    openmp_loops: Option<Loops>,
    /// Imported features that pin the threads which use them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pins: Vec<&'static str>,
    /// System calls that are not redirected.
    left_alone: Vec<LeftAlone>,
}

/// How the OpenMP loops of an object get their iterations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Loops {
    /// From the library, one chunk after the other.
    Chunks,
    /// Divided among the threads before the loop begins; or there are no loops.
    Static,
}

/// Fails if the program is not found or cannot be executed.
pub fn examine(name: &OsStr) -> Result<Target, Failure> {
    let path = program::find(name, std::env::var_os("PATH").as_deref())?;
    let mut target = Target {
        name: name.to_string_lossy().into_owned(),
        findings: Vec::new(),
        objects: Vec::new(),
    };
    let program = program::inspect(&path);
    let chain: Vec<String> = program.chain.iter().map(|p| p.display().to_string()).collect();
    target.findings.push(Finding::ok("program", chain.join(", run by ")));
    let file = program.chain.last().unwrap_or(&path);
    if let Some(reason) = &program.native {
        let fix = instead(program.elf.as_ref(), SchedExt::now().is_some());
        target.findings.push(Finding::off("kind", reason.text.clone(), fix));
    }
    let Some(elf) = &program.elf else { return Ok(target) };
    let Some(loader) = &elf.interpreter else { return Ok(target) };
    target.findings.push(Finding::ok("loader", loader.clone()));
    if program.native.is_some() {
        return Ok(target);
    }
    if program::has_capabilities(file) {
        target
            .findings
            .push(Finding::ok("capabilities", "the file has some; LD_PRELOAD still works as root"));
    }
    if elf.shadow_stack {
        target.findings.push(Finding::ok("shadow stacks", "it supports them"));
    }
    objects(&mut target, file, Path::new(loader));
    Ok(target)
}

/// Return what to do instead of preloading. `elf`: None if the kernel does not run the file on this
/// machine, or it cannot be read. `has_sched_ext`: whether this kernel has it.
fn instead(elf: Option<&Elf>, has_sched_ext: bool) -> String {
    let Some(elf) = elf else {
        return "none for this program; programs that it starts are judged separately".into();
    };
    let sched = match has_sched_ext {
        true => "use lissom sched, which needs no preloading",
        false => "use lissom sched, which needs no preloading, but a kernel with sched_ext",
    };
    let link = if elf.interpreter.is_none() { "link it dynamically, or " } else { "" };
    format!("{link}{sched}; programs that it starts are judged separately")
}

/// Find the libraries that are loaded at start, and examine them. Runs only the system's own
/// loader, with `--list`. `ldd` would run any loader that the file names, which is unsafe for files
/// from elsewhere.
fn objects(target: &mut Target, file: &Path, loader: &Path) {
    let trusted = loader.parent().is_some_and(|folder| unpack::trusted_folder(folder).is_ok());
    if !trusted {
        let why = format!("not listed: other users could change {}", loader.display());
        target.findings.push(Finding::limited(
            "libraries",
            why,
            "install the program's loader as root",
        ));
        return;
    }
    // Resolve links as the kernel does: $ORIGIN is the folder of the program, not of a link to it.
    let real = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let file = real.as_path();
    let output = match list(file, loader) {
        Ok(output) => output,
        Err(e) => {
            let fix = format!("check {}", loader.display());
            target.findings.push(Finding::limited("libraries", format!("not listed: {e}"), fix));
            return;
        }
    };
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let missing: Vec<&str> =
        list.lines().filter_map(|l| l.trim().strip_suffix(" => not found")).collect();
    if !missing.is_empty() || !output.status.success() {
        let why = if missing.is_empty() {
            format!("not listed: {}", String::from_utf8_lossy(&output.stderr).trim())
        } else {
            format!("not found: {}", missing.join(", "))
        };
        target.findings.push(Finding::off(
            "libraries",
            why,
            "install them, or set LD_LIBRARY_PATH",
        ));
    }
    let mut paths = vec![file.to_path_buf()];
    paths.extend(list.lines().filter_map(listed_path));
    target.findings.extend(paths.iter().find_map(|p| glibc(p)));
    target.objects = paths.into_iter().filter_map(count).collect();

    let with: Vec<String> = target
        .objects
        .iter()
        .filter(|o| o.syscalls > 0)
        .map(|o| {
            format!("{} {}", o.path.file_name().unwrap_or_default().to_string_lossy(), o.syscalls)
        })
        .collect();
    let text = if with.is_empty() { "none".to_string() } else { with.join(", ") };
    let why = format!("{text}; in {} objects, without those loaded later", target.objects.len());
    target.findings.push(Finding::ok("system calls", why));
    target.findings.extend(left_alone(&target.objects));
    target.findings.extend(pins(&target.objects));
    target.findings.extend(loops(&target.objects));
    target.findings.extend(spinning(&target.objects));
}

/// Report settings that stop the spinning of the libraries loaded at start.
fn spinning(objects: &[Object]) -> Option<Finding> {
    let files = objects.iter().filter_map(|o| o.path.file_name()?.to_str());
    let knobs = knobs::named(files);
    let why = "threads of libraries spin before they block; where threads outnumber CPUs, these \
               settings make them faster";
    (!knobs.is_empty()).then(|| Finding::ok("spinning", format!("{why}: {}", knobs.join("; "))))
}

fn left_alone(objects: &[Object]) -> Option<Finding> {
    let of = |o: &Object| {
        let name = o.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let one = |l: &LeftAlone| {
            let number = l.number.map_or(String::new(), |n| format!("system call {n}: "));
            format!("{name}+{:#x} ({number}{})", l.offset, l.why)
        };
        o.left_alone.iter().map(one).collect::<Vec<_>>()
    };
    let found: Vec<String> = objects.iter().flat_map(of).collect();
    (!found.is_empty())
        .then(|| Finding::ok("left alone", format!("not redirected: {}", found.join("; "))))
}

/// Functions that pin their callers, or some of them, to their kernel threads
/// (docs/guide/limits.md).
const PINS: &[(&str, &str)] = &[
    ("pthread_mutexattr_setprotocol", "priority-inheriting mutexes"),
    ("pthread_mutexattr_setrobust", "robust mutexes"),
    ("timer_create", "POSIX timers"),
    ("sched_setscheduler", "scheduling classes"),
    ("sched_setparam", "scheduling classes"),
    ("pthread_setschedparam", "scheduling classes"),
    ("pthread_attr_setschedpolicy", "scheduling classes"),
    ("setpriority", "nice values"),
    ("sched_setaffinity", "affinity"),
    ("pthread_setaffinity_np", "affinity"),
    ("pthread_attr_setaffinity_np", "affinity"),
    ("unshare", "namespaces"),
    ("setns", "namespaces"),
    ("setfsuid", "file system users"),
    ("__rseq_offset", "restartable sequences (all threads)"),
];

/// Find features by the names of imported functions. libc has all of them, and OpenMP's affinity
/// does not pin.
fn pins_of(path: &Path, data: &[u8]) -> Vec<&'static str> {
    const EXEMPT: &[&str] = &["libc.so", "libpthread", "ld-linux", "libgomp", "libomp", "libiomp"];
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    if EXEMPT.iter().any(|library| file.starts_with(library)) {
        return Vec::new();
    }
    let mut found: Vec<&str> = data
        .split(|&b| b == 0)
        .filter_map(|name| PINS.iter().find(|(function, _)| name == function.as_bytes()))
        .map(|(_, what)| *what)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn pins(objects: &[Object]) -> Option<Finding> {
    let of = |o: &Object| {
        let name = o.path.file_name().unwrap_or_default().to_string_lossy();
        (!o.pins.is_empty()).then(|| format!("{name}: {}", o.pins.join(", ")))
    };
    let found: Vec<String> = objects.iter().filter_map(of).collect();
    (!found.is_empty()).then(|| {
        let why = format!(
            "threads that use these features stay on their own kernel threads, where switches \
             cost more: {}; lissom run --stats counts them",
            found.join("; ")
        );
        Finding::ok("may pin", why)
    })
}

fn loops(objects: &[Object]) -> Option<Finding> {
    let names = |kind| {
        let of_kind = objects.iter().filter(|o| o.openmp_loops == Some(kind));
        of_kind
            .map(|o| o.path.file_name().unwrap_or_default().to_string_lossy())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (chunks, none) = (names(Loops::Chunks), names(Loops::Static));
    if !chunks.is_empty() {
        let why = format!(
            "malleable with schedule dynamic or guided: {chunks}; static loops by slots only"
        );
        return Some(Finding::ok("OpenMP loops", why));
    }
    let fix = "compile loops with schedule(runtime), and pass --omp-schedule";
    (!none.is_empty()).then(|| {
        Finding::limited("OpenMP loops", format!("static, malleable by slots only: {none}"), fix)
    })
}

/// Classify loops by the names of imported functions. Skips OpenMP libraries, which have these
/// names, too.
fn loops_of(path: &Path, data: &[u8]) -> Option<Loops> {
    const CHUNKS: &[&str] = &["dynamic_", "guided_", "runtime_"];
    let file = path.file_name()?.to_string_lossy();
    if ["libgomp", "libomp", "libiomp"].iter().any(|library| file.starts_with(library)) {
        return None;
    }
    let mut found = None;
    for name in data.split(|&b| b == 0).filter_map(|name| std::str::from_utf8(name).ok()) {
        if name.starts_with("__kmpc_dispatch_next_")
            || (name.starts_with("GOMP_loop_") && CHUNKS.iter().any(|c| name.contains(c)))
        {
            return Some(Loops::Chunks);
        }
        if name == "GOMP_parallel" || name == "__kmpc_fork_call" {
            found = Some(Loops::Static);
        }
    }
    found
}

fn count(path: PathBuf) -> Option<Object> {
    let data = fs::read(&path).ok()?;
    let Kind::Elf(elf) = elf::classify(&*data) else { return None };
    Some(Object {
        syscalls: elf::count_syscalls(&data, &elf),
        openmp_loops: loops_of(&path, &data),
        pins: pins_of(&path, &data),
        left_alone: survey::left_alone(&path).unwrap_or_default(),
        path,
    })
}

fn glibc(path: &Path) -> Option<Finding> {
    let line = greeting(path)?;
    if version(number(&line)) < (2, 28) {
        return Some(Finding::off("libc", line, "use glibc 2.28 or newer"));
    }
    Some(Finding::ok("libc", line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmp_loops() {
        let of = |name, data: &[u8]| loops_of(Path::new(name), data);
        assert_eq!(
            of("a.out", b"x\0GOMP_parallel\0GOMP_loop_ull_guided_next\0"),
            Some(Loops::Chunks)
        );
        assert_eq!(of("a.out", b"\0GOMP_parallel\0GOMP_loop_static_next\0"), Some(Loops::Static));
        assert_eq!(of("a.out", b"\0__kmpc_dispatch_next_8u\0"), Some(Loops::Chunks));
        assert_eq!(of("/lib/libgomp.so.1", b"\0GOMP_loop_dynamic_next\0"), None);
        assert_eq!(of("a.out", b"\0malloc\0"), None);
    }

    #[test]
    fn alternatives() {
        let fixed = Elf::default();
        let text = instead(Some(&fixed), true);
        assert!(text.starts_with("link it dynamically, or use lissom sched"), "{text}");
        let musl = Elf { interpreter: Some("/lib/ld-musl-x86_64.so.1".into()), ..Elf::default() };
        let text = instead(Some(&musl), false);
        assert!(text.starts_with("use lissom sched") && text.contains("sched_ext"), "{text}");
        assert!(instead(None, true).starts_with("none"));
    }

    #[test]
    fn what_may_pin() {
        let of = |name, data: &[u8]| pins_of(Path::new(name), data);
        let data = b"\0timer_create\0sched_setparam\0sched_setscheduler\0setns_of\0";
        assert_eq!(of("/bin/a", data), ["POSIX timers", "scheduling classes"]);
        assert!(of("/lib/libc.so.6", data).is_empty() && of("a", b"\0malloc\0").is_empty());
    }

    #[test]
    fn loader_lines() {
        let path = |line| listed_path(line).map(|p| p.display().to_string());
        assert_eq!(
            path("\tlibm.so.6 => /lib/libm.so.6 (0x00007f)").as_deref(),
            Some("/lib/libm.so.6")
        );
        assert_eq!(path("\t/lib64/ld.so (0x00007f)").as_deref(), Some("/lib64/ld.so"));
        assert_eq!(path("\t./libx.so (0x00007f)").as_deref(), Some("./libx.so"));
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(path("\tlibx.so => not found"), None);
    }
}
