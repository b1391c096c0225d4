//! Compile the runtime (C and assembly in runtime/, and the Zydis decoder) into liblissom.so. Embed
//! it and the BPF programs of bpf/ in the binary. Convert the lists of runtime/abi.h to Rust.
//!
//! This is a small make: it compiles a source again only if its command line, the source or an
//! included header has changed. The `cc` crate only finds the compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;
use std::{env, fs};

#[path = "build/abi.rs"]
mod abi;
#[path = "build/bpf.rs"]
mod bpf;

/// Files of Zydis and its base library that decoding needs.
const ZYDIS: &[&str] =
    &["src/Decoder.c", "src/DecoderData.c", "src/Register.c", "src/SharedData.c", "src/Utils.c"];

/// Sources that are compiled without `together`. The compiler itself emits calls to the functions
/// of `mem.c`. The others contain assembly that refers to C functions by name, and GCC would drop
/// or rename these.
const APART: &[&str] = &["mem.c", "restrict.c", "lissom.c"];

/// Return flags of build/flags.
fn flags(names: &[&str]) -> Vec<String> {
    let lines = include_str!("build/flags").lines();
    let named = lines.filter_map(|line| line.split_once(": ").filter(|(n, _)| names.contains(n)));
    let found: Vec<String> =
        named.flat_map(|(_, flags)| flags.split_whitespace().map(String::from)).collect();
    assert!(!found.is_empty(), "build/flags has no {names:?}");
    found
}

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=runtime");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=Cargo.lock");

    let target = env::var("TARGET").expect("cargo sets it");
    assert!(
        target.starts_with("x86_64-") && target.contains("linux"),
        "lissom runs on x86-64 Linux only, not on {target}"
    );
    println!("cargo::rerun-if-env-changed=CC");
    let tool = cc::Build::new().cargo_output(false).get_compiler();
    let together = if tool.is_like_gnu() { flags(&["together"]) } else { vec![] };
    let compiler = tool.path().to_path_buf();
    bpf::build(&root, &out);
    abi::generate(&root.join("runtime/abi.h"), &compiler, &out);

    commit(&root);

    println!("cargo::rerun-if-changed=workloads");
    println!("cargo::rustc-env=LISSOM_WORKLOADS={}", files(&root.join("workloads")));

    let runtime = root.join("runtime");
    shared(&runtime, &compiler);
    let zydis = zydis_sources();
    judge(&root, &zydis, &compiler);
    survey(&root, &zydis, &compiler);
    let include = |dir: PathBuf| format!("-I{}", dir.display());
    let zydis_includes =
        [include(zydis.join("include")), include(zydis.join("dependencies/zycore/include"))];

    // Make paths in messages and debug information relative to the source tree. If several prefixes
    // match, the last one counts.
    let place = |from: String, to: &str| format!("-ffile-prefix-map={from}={to}");
    let places = [
        place(root.display().to_string(), "."),
        place(format!("{}/", root.display()), ""),
        place(format!("{}/", zydis.display()), "zydis/"),
    ];

    let mut jobs = Vec::new();
    let objects = out.join("objects");
    for source in runtime_sources(&runtime) {
        let name = source.strip_prefix(&root).expect("below the root");
        let mut flags = flags(&["runtime", "ours", "zydis"]);
        if !APART.iter().any(|file| source.ends_with(file)) {
            flags.extend(together.iter().cloned());
        }
        flags.push(include(runtime.clone()));
        // Include as system headers: their warnings are not ours.
        flags.extend(zydis_includes.iter().map(|i| i.replacen("-I", "-isystem", 1)));
        flags.extend(places.iter().cloned());
        jobs.push(Job::new(&source, &object_path(&objects, name), flags));
    }
    for name in ZYDIS {
        let mut flags = flags(&["runtime", "theirs", "zydis"]);
        flags.extend(zydis_includes.iter().cloned());
        flags.push(include(zydis.join("src")));
        flags.extend(places.iter().cloned());
        let object = object_path(&objects, &Path::new("zydis").join(name));
        jobs.push(Job::new(&zydis.join(name), &object, flags));
    }

    forget_other_compiler(&compiler, &objects);
    let changed = compile(&compiler, &jobs);
    let library = out.join("liblissom.so");
    let linked = out.join("liblissom.objects");
    let link = flags(&["link"]);
    let mut list = format!("{}\n", link.join(" "));
    list.extend(jobs.iter().map(|j| format!("{}\n", j.object.display())));
    let relink =
        changed || !library.exists() || fs::read_to_string(&linked).ok().as_deref() != Some(&list);
    if relink {
        let mut command = Command::new(&compiler);
        command
            .args(flags(&["runtime", "ours"]))
            .args(together)
            .args(&places)
            .args(link)
            .arg("-o")
            .arg(&library);
        command.args(jobs.iter().map(|j| &j.object));
        run(&mut command);
        fs::write(&linked, &list).expect("writable OUT_DIR");
    }
    println!("cargo::rustc-env=LISSOM_RUNTIME={}", library.display());
    // FNV-1a hash. It distinguishes our own builds.
    let content = fs::read(&library).expect("the library that was linked");
    let hash = content
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    println!("cargo::rustc-env=LISSOM_RUNTIME_HASH={hash:016x}");

    // A copy for debuggers and for preloading by hand: target/<profile>/liblissom.so.
    if let Some(profile) = out.ancestors().nth(3) {
        // Replace the file instead of overwriting it: a running program may have mapped the old
        // one.
        let temporary = profile.join(format!(".liblissom.so.{}", std::process::id()));
        if fs::copy(&library, &temporary).is_ok() {
            let _ = fs::rename(&temporary, profile.join("liblissom.so"));
        }
    }
}

/// Return the number of files. `include_dir!` notices changed files, but not new ones; cargo
/// compiles the crate again when this number changes.
fn files(folder: &Path) -> usize {
    let paths = fs::read_dir(folder).expect("readable").flatten().map(|e| e.path());
    paths.map(|p| if p.is_dir() { files(&p) } else { 1 }).sum()
}

/// Set the commit, and whether files differ from it, for `src/version.rs`. Only for releases:
/// otherwise each commit would compile the crate again.
fn commit(root: &Path) {
    if env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return };
    let changed = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])
        .unwrap_or_default();
    println!("cargo::rustc-env=LISSOM_COMMIT={commit}");
    println!("cargo::rustc-env=LISSOM_DIRTY={}", u8::from(!changed.is_empty()));
    for path in ["src", "crates", "bpf"] {
        println!("cargo::rerun-if-changed={path}");
    }
    for name in ["HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// Link parts of the runtime into the binary: the threshold controller, also used by `lissom kvm`,
/// and the condition for switches in user space, for `lissom doctor`.
fn shared(runtime: &Path, compiler: &Path) {
    let mut build = cc::Build::new();
    build.compiler(compiler).std("gnu11").include(runtime).warnings(true).extra_warnings(true);
    build
        .file(runtime.join("policy/apple.c"))
        .file(runtime.join("prim/vector.c"))
        .compile("lissom_shared");
}

/// Return a build of parts of the runtime for the binary. They call the Zydis of the `zydis` crate.
fn for_the_binary(root: &Path, zydis: &Path, compiler: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.compiler(compiler).std("gnu11").warnings(true).extra_warnings(true).opt_level(2);
    build.include(root.join("runtime"));
    for name in ["include", "dependencies/zycore/include"] {
        // Include as system headers: their warnings are not ours.
        build.flag("-isystem").flag(zydis.join(name));
    }
    for define in flags(&["zydis"]) {
        build.flag(define);
    }
    build
}

/// Link the search for system calls into the binary, for `src/doctor/survey.rs`.
fn survey(root: &Path, zydis: &Path, compiler: &Path) {
    println!("cargo::rerun-if-changed=src/doctor/survey.c");
    let mut build = for_the_binary(root, zydis, compiler);
    build.define("_GNU_SOURCE", None).flag("-Wno-missing-field-initializers");
    build.files(runtime_sources(&root.join("runtime/patch")));
    build.file(root.join("runtime/prim/maps.c")).file(root.join("runtime/prim/lock.c"));
    build.file(root.join("src/doctor/survey.c"));
    build.compile("lissom_survey");
}

/// Link the interpreter that finds waiting loops into the binary, for `src/judge`: it also
/// judges threads of other processes.
fn judge(root: &Path, zydis: &Path, compiler: &Path) {
    println!("cargo::rerun-if-changed=src/judge/orbit.c");
    println!("cargo::rerun-if-changed=src/judge/orbit.h");
    println!("cargo::rerun-if-changed=src/sched/branches.c");
    let mut build = for_the_binary(root, zydis, compiler);
    for name in [
        "bits", "counter", "decode", "delay", "depends", "execute", "explore", "machine", "prove",
        "vector",
    ] {
        build.file(root.join(format!("runtime/spin/{name}.c")));
    }
    for name in ["judge/orbit", "sched/branches"] {
        build.file(root.join(format!("src/{name}.c")));
    }
    build.compile("lissom_judge");
}

/// Return all C and assembly files below `dir`, except tests (`*_test.c`, and folders named
/// `tests`).
fn runtime_sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("runtime/ is readable") {
        let path = entry.expect("runtime/ is readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" {
                found.extend(runtime_sources(&path));
            }
        } else if (name.ends_with(".c") && !name.ends_with("_test.c")) || name.ends_with(".S") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Return the folder of the C sources in the `zydis` crate.
fn zydis_sources() -> PathBuf {
    let output = Command::new(env::var_os("CARGO").expect("cargo sets it"))
        .args(["metadata", "--locked", "--format-version", "1", "--manifest-path"])
        .arg(
            Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
                .join("Cargo.toml"),
        )
        .output()
        .expect("cargo metadata can be run");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|p| p["name"] == "zydis")
        .and_then(|p| p["manifest_path"].as_str())
        .expect("Cargo.toml depends on zydis");
    let sources = Path::new(manifest).with_file_name("zydis-c");
    assert!(sources.is_dir(), "the zydis crate has no zydis-c folder");
    sources
}

fn object_path(objects: &Path, source: &Path) -> PathBuf {
    let name: Vec<String> = source.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    objects.join(format!("{}.o", name.join("-")))
}

struct Job {
    source: PathBuf,
    object: PathBuf,
    flags: Vec<String>,
}

impl Job {
    fn new(source: &Path, object: &Path, flags: Vec<String>) -> Job {
        Job { source: source.to_path_buf(), object: object.to_path_buf(), flags }
    }

    /// Return the command line as text. It is kept beside the object, so that new flags compile it
    /// again.
    fn stamp(&self, compiler: &Path) -> String {
        format!("{} {} {}", compiler.display(), self.flags.join(" "), self.source.display())
    }

    fn up_to_date(&self, compiler: &Path) -> bool {
        let modified = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
        let Some(built): Option<SystemTime> = modified(&self.object) else {
            return false;
        };
        if fs::read_to_string(self.object.with_extension("cmd")).ok() != Some(self.stamp(compiler))
        {
            return false;
        }
        let Ok(rule) = fs::read_to_string(self.object.with_extension("d")) else {
            return false;
        };
        // `object: source header header \ ...`. A path with a space only means compiling again.
        rule.replace("\\\n", " ").split_once(": ").is_some_and(|(_, files)| {
            files.split_whitespace().all(|f| modified(Path::new(f)).is_some_and(|m| m <= built))
        })
    }
}

/// Delete all objects if another version of the compiler made them: GCC cannot link its LTO
/// objects.
fn forget_other_compiler(compiler: &Path, objects: &Path) {
    let version = Command::new(compiler).arg("--version").output().map(|o| o.stdout);
    let version = version.unwrap_or_default();
    let noted = objects.join("compiler");
    if fs::read(&noted).ok().as_ref() != Some(&version) {
        let _ = fs::remove_dir_all(objects);
        fs::create_dir_all(objects).expect("writable OUT_DIR");
        fs::write(noted, version).expect("writable OUT_DIR");
    }
}

/// Compile what is out of date, with as many processes as cargo allows. Returns whether anything
/// was.
fn compile(compiler: &Path, jobs: &[Job]) -> bool {
    if let Some(dir) = jobs.first().and_then(|j| j.object.parent()) {
        fs::create_dir_all(dir).expect("writable OUT_DIR");
    }
    let stale: Vec<&Job> = jobs.iter().filter(|j| !j.up_to_date(compiler)).collect();
    let todo = Mutex::new(stale.iter());
    let workers = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().ok().and_then(|mut t| t.next());
                    let Some(job) = next else { break };
                    let mut command = Command::new(compiler);
                    command.args(&job.flags).args(["-MD", "-MF"]);
                    command.arg(job.object.with_extension("d"));
                    command.arg("-c").arg(&job.source).arg("-o").arg(&job.object);
                    run(&mut command);
                    fs::write(job.object.with_extension("cmd"), job.stamp(compiler))
                        .expect("writable OUT_DIR");
                }
            });
        }
    });
    !stale.is_empty()
}

/// Run a compiler; its messages become cargo's. On failure, ends the build without a panic's
/// backtrace, so that the compiler's messages come last.
fn run(command: &mut Command) {
    let output = match command.output() {
        Ok(output) => output,
        Err(e) => {
            eprintln!(
                "{:?} cannot be run ({e}): is a C compiler installed?",
                command.get_program()
            );
            std::process::exit(1);
        }
    };
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{messages}");
        std::process::exit(1);
    }
    for line in messages.lines() {
        println!("cargo::warning={line}");
    }
}
