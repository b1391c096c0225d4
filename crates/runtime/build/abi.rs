//! runtime/abi.h as Rust: its constants, its X-macro lists and the layout of its structures as the
//! C compiler sees it. crates/runtime/crates/runtime/src/abi.rs asserts that its own structures
//! have that layout.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Numbers and strings that Rust needs by name.
const NUMBERS: &[(&str, &str)] = &[
    ("LISSOM_ABI_VERSION", "u32"),
    ("LISSOM_ABI_MAGIC", "u64"),
    ("LISSOM_MAX_SLOTS", "usize"),
    ("LISSOM_MAX_RECORDS", "usize"),
    ("LISSOM_STRIPES", "usize"),
    ("LISSOM_MAX_OBJECTS", "usize"),
    ("LISSOM_MAX_LOOPS", "usize"),
    ("LISSOM_OBJECT_NAME", "usize"),
    ("LISSOM_REGION_BYTES", "usize"),
    ("LISSOM_PROGRAM_MAGIC", "u64"),
    ("LISSOM_PROGRAM_VERSION", "u32"),
    ("LISSOM_PROGRAM_BYTES", "usize"),
    ("LISSOM_PEER_CPUS", "usize"),
    ("LISSOM_LIVE_MAGIC", "u64"),
    ("LISSOM_LIVE_VERSION", "u32"),
    ("LISSOM_MAX_LOCKS", "usize"),
    ("LISSOM_LOCK_CODE", "usize"),
];

/// structure -> fields whose offsets are checked
const LAYOUT: &[(&str, &[&str])] = &[
    ("lissom_object", &["name", "patched", "left"]),
    (
        "lissom_loop",
        &[
            "offset",
            "samples",
            "waits",
            "yields",
            "short_spins",
            "waited_tsc",
            "site",
            "retired",
            "path",
        ],
    ),
    (
        "lissom_record",
        &[
            "pid",
            "state",
            "slots",
            "objects",
            "comm",
            "reason",
            "counter",
            "stripe",
            "pinned",
            "kept_waits",
            "object",
            "loops",
            "loop",
        ],
    ),
    ("lissom_header", &["magic", "version", "records", "claimed", "record_bytes"]),
    ("lissom_region", &["header", "record"]),
    ("lissom_lock_profile", &["address", "samples", "code"]),
    (
        "lissom_live",
        &[
            "magic",
            "version",
            "bytes",
            "heartbeat",
            "is_asleep",
            "is_native",
            "threads",
            "slots",
            "limit",
            "running",
            "demand",
            "lock_every",
            "lock",
            "record",
        ],
    ),
    (
        "lissom_program",
        &[
            "magic",
            "version",
            "target",
            "heartbeat",
            "is_malleable",
            "slots",
            "active_threads",
            "demand",
            "threads",
            "limit",
            "waits",
            "cpus",
            "keep_to",
        ],
    ),
];

/// The lists; each becomes `NAME: &[(&str, &str)]` of (name, text).
const LISTS: &[&str] = &["LISSOM_COUNTERS", "LISSOM_PIN_REASONS", "LISSOM_STATES"];

pub fn generate(header: &Path, compiler: &Path, out: &Path) {
    let text = fs::read_to_string(header).expect("runtime/abi.h is readable");
    let mut rust = String::from("// Made by build.rs from runtime/abi.h.\n");

    for list in LISTS {
        let entries = x_macro(&text, list);
        assert!(!entries.is_empty(), "abi.h: {list} has no entries");
        let name = list.trim_start_matches("LISSOM_");
        writeln!(rust, "pub const {name}: &[(&str, &str)] = &[").expect("string");
        for (entry, text) in entries {
            writeln!(rust, "    ({entry:?}, {text:?}),").expect("string");
        }
        rust.push_str("];\n");
    }
    let mut variables = Vec::new();
    for line in text.lines() {
        // #define LISSOM_ENV_VERBOSE "LISSOM_VERBOSE" /* ... */, and other names
        let mut words = line.split_whitespace();
        if let (Some("#define"), Some(name), Some(value)) =
            (words.next(), words.next(), words.next())
            && ["LISSOM_ENV_", "LISSOM_MANAGER_S", "LISSOM_MONITOR_NAME", "LISSOM_LIVE_NAME"]
                .iter()
                .any(|p| name.starts_with(p))
        {
            let name = name.trim_start_matches("LISSOM_");
            writeln!(rust, "pub const {name}: &str = {value};").expect("string");
            if name.starts_with("ENV_") {
                variables.push(name);
            }
        }
    }
    writeln!(rust, "pub const ENV_NAMES: &[&str] = &[{}];", variables.join(", ")).expect("string");
    rust.push_str(&ask_compiler(header, compiler, out));
    fs::write(out.join("abi.rs"), rust).expect("writable OUT_DIR");
}

/// The entries `X(name, "text")` of the macro `list`; its definition ends at the first line without
/// a trailing backslash.
fn x_macro(text: &str, list: &str) -> Vec<(String, String)> {
    let start = format!("#define {list}(X)");
    let mut entries = Vec::new();
    for line in text.lines().skip_while(|l| !l.starts_with(&start)).skip(1) {
        let entry = line.trim().trim_end_matches('\\').trim();
        let parts = entry
            .strip_prefix("X(")
            .and_then(|e| e.strip_suffix(')'))
            .and_then(|e| e.split_once(", "))
            .unwrap_or_else(|| panic!("abi.h: not an entry of {list}: {line}"));
        entries.push((parts.0.to_string(), parts.1.trim_matches('"').to_string()));
        if !line.ends_with('\\') {
            break;
        }
    }
    entries
}

/// Compiles and runs a C program that prints what only the C compiler knows.
fn ask_compiler(header: &Path, compiler: &Path, out: &Path) -> String {
    let mut c = format!(
        "#include <stdio.h>\n#include <stddef.h>\n#include \"{}\"\nint main(void)\n{{\n",
        header.display()
    );
    for (name, kind) in NUMBERS {
        let short = name.trim_start_matches("LISSOM_");
        writeln!(
            c,
            "    printf(\"pub const {short}: {kind} = %llu;\\n\", (unsigned long long)({name}));"
        )
        .expect("string");
    }
    for (structure, fields) in LAYOUT {
        let name = structure.to_uppercase();
        writeln!(
            c,
            "    printf(\"pub const C_SIZE_{name}: usize = %zu;\\n\", sizeof(struct {structure}));"
        )
        .expect("string");
        for field in *fields {
            let offset = format!("C_OFFSET_{name}_{}", field.to_uppercase());
            writeln!(
                c,
                "    printf(\"pub const {offset}: usize = %zu;\\n\", offsetof(struct {structure}, {field}));"
            )
            .expect("string");
        }
    }
    c.push_str("    return 0;\n}\n");

    let source = out.join("layout.c");
    let program = out.join("layout");
    fs::write(&source, c).expect("writable OUT_DIR");
    let status = Command::new(compiler)
        .args(["-std=gnu11", "-o"])
        .args([&program, &source])
        .status()
        .unwrap_or_else(|e| {
            panic!("{} cannot be run ({e}): is a C compiler installed?", compiler.display())
        });
    assert!(status.success(), "the layout of abi.h cannot be compiled");
    assert_eq!(env::var("HOST"), env::var("TARGET"), "cross-compiling is not supported");
    let output = Command::new(&program).output().expect("the layout program runs");
    String::from_utf8(output.stdout).expect("it prints ASCII")
}
