//! Places of addresses in programs, as text for people.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use procfs::process::{MMapPath, MemoryMap, Process};
use serde::Serialize;

use crate::symbol;
use ui::terminal::plain;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Name of the file, without its folders.
    pub object: String,
    /// Of an instruction: offset in the file. Of data: offset from where the object begins in
    /// memory.
    pub offset: u64,
    /// Function or variable. None: the file has no symbol there.
    pub symbol: Option<String>,
    /// Offset in the symbol.
    pub behind: u64,
    /// `file.c:12`, if there is debug information.
    pub line: Option<String>,
}

impl Place {
    /// Format as `function+12 object` or `object+0x12`, followed by the line if it is known.
    pub fn text(&self) -> String {
        let place = match &self.symbol {
            Some(symbol) => format!("{symbol}+{} {}", self.behind, self.object),
            None => format!("{}+{:#x}", self.object, self.offset),
        };
        self.line.iter().fold(place, |place, line| format!("{place} {line}"))
    }
}

/// Cache of places: finding a symbol requires reading a whole file.
#[derive(Default)]
pub struct Places(HashMap<(u32, Key), Option<Place>>);

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Code(u64),
    Caller(u64),
    Data(u64),
    File(String, u64),
}

impl Places {
    /// Return the place of an instruction. None: the process is gone, or the code is not in a file.
    pub fn of(&mut self, pid: u32, ip: u64) -> Option<&Place> {
        self.find(pid, Key::Code(ip), || of_code(pid, ip))
    }

    /// Return the place of the call that returns to this address. None: no call ends there.
    pub fn of_caller(&mut self, pid: u32, address: u64) -> Option<&Place> {
        self.find(pid, Key::Caller(address), || of_caller(pid, address))
    }

    /// Return the place of a variable. None: it is not in an object, but on the heap or a stack.
    pub fn of_data(&mut self, pid: u32, address: u64) -> Option<&Place> {
        self.find(pid, Key::Data(address), || of_data(pid, address))
    }

    /// Return the place of an instruction in a file that the process named.
    pub fn in_file(&mut self, pid: u32, file: &str, offset: u64) -> Option<&Place> {
        self.find(pid, Key::File(file.into(), offset), || in_file(pid, Path::new(file), offset))
    }

    fn find(&mut self, pid: u32, key: Key, look: impl FnOnce() -> Option<Place>) -> Option<&Place> {
        self.0.entry((pid, key)).or_insert_with(look).as_ref()
    }

    /// Keep only the places in processes for which `is_there` is true.
    pub fn keep(&mut self, is_there: impl Fn(u32) -> bool) {
        self.0.retain(|(pid, _), _| is_there(*pid));
    }
}

fn of_code(pid: u32, ip: u64) -> Option<Place> {
    let (path, offset) = file_at(pid, ip)?;
    in_file(pid, &path, offset)
}

fn of_caller(pid: u32, address: u64) -> Option<Place> {
    let (path, offset) = file_at(pid, address)?;
    let mut before = [0; 7];
    let file = File::open(inside(pid, &path)).ok()?;
    file.read_exact_at(&mut before, offset.checked_sub(7)?).ok()?;
    call_ends_at(&before).then(|| in_file(pid, &path, offset - 1))?
}

fn in_file(pid: u32, path: &Path, offset: u64) -> Option<Place> {
    let (function, line) = symbol::code_at(&inside(pid, path), offset);
    let (symbol, behind) = function.unzip();
    Some(Place { object: name(path)?, offset, symbol, behind: behind.unwrap_or(0), line })
}

/// Return the file with the code at `address`, and the offset in it.
fn file_at(pid: u32, address: u64) -> Option<(PathBuf, u64)> {
    let maps = maps(pid)?;
    let map = maps.iter().find(|m| m.address.0 <= address && address < m.address.1)?;
    Some((path(map)?.into(), address - map.address.0 + map.offset))
}

/// Find a variable. Uninitialised data of an object follows the mappings of its file, in anonymous
/// memory.
fn of_data(pid: u32, address: u64) -> Option<Place> {
    let maps = maps(pid)?;
    let here = maps.iter().position(|m| m.address.0 <= address && address < m.address.1)?;
    let map = match path(&maps[here]) {
        Some(_) => &maps[here],
        None => maps[..here].last().filter(|before| {
            before.address.1 == maps[here].address.0
                && matches!(maps[here].pathname, MMapPath::Anonymous)
        })?,
    };
    let path = path(map)?;
    let first = maps.iter().find(|m| m.pathname == map.pathname)?;
    let offset = address - first.address.0;
    let found = symbol::variable_at(&inside(pid, path), offset)?;
    Some(Place { object: name(path)?, offset, symbol: Some(found.0), behind: found.1, line: None })
}

fn maps(pid: u32) -> Option<Vec<MemoryMap>> {
    Some(Process::new(pid as i32).ok()?.maps().ok()?.0)
}

fn path(map: &MemoryMap) -> Option<&Path> {
    match &map.pathname {
        MMapPath::Path(path) => Some(path),
        _ => None,
    }
}

fn name(path: &Path) -> Option<String> {
    Some(plain(&path.file_name()?.to_string_lossy()))
}

/// Return whether these bytes end with a call instruction: 2 to 7 bytes, without prefixes.
fn call_ends_at(before: &[u8; 7]) -> bool {
    let decoder = zydis::Decoder::new64();
    (2..=7).any(|length| {
        let decoded = decoder.decode_first::<zydis::NoOperands>(&before[7 - length..]);
        decoded.ok().flatten().is_some_and(|instruction| {
            let is_call = instruction.mnemonic == zydis::Mnemonic::CALL;
            is_call && usize::from(instruction.length) == length
        })
    })
}

/// Return a path to the file as the process sees it: it may be in a container.
fn inside(pid: u32, path: &Path) -> PathBuf {
    let below = path.strip_prefix("/").unwrap_or(path);
    Path::new("/proc").join(pid.to_string()).join("root").join(below)
}

/// Return the name of a process. "?": it is gone.
pub fn program(pid: u32) -> String {
    let stat = Process::new(pid as i32).and_then(|p| p.stat());
    stat.map_or("?".into(), |s| plain(&s.comm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    static NOTHING: AtomicU32 = AtomicU32::new(0);
    static SOMETHING: AtomicU32 = AtomicU32::new(7);

    #[test]
    fn of_this_program() {
        let (ip, pid) = (of_this_program as fn() as usize as u64 + 1, std::process::id());
        let mut places = Places::default();
        let found = places.of(pid, ip).expect("a function of a file").text();
        assert!(found.contains("of_this_program"), "{found}");
        // Tests have debug information.
        assert!(found.contains("place.rs:"), "{found}");
        assert_eq!(places.of(pid, 16), None);
        for (variable, name) in [(&NOTHING, "NOTHING"), (&SOMETHING, "SOMETHING")] {
            let found =
                places.of_data(pid, std::ptr::from_ref(variable) as u64).expect("a variable");
            assert!(found.symbol.as_deref().is_some_and(|s| s.contains(name)), "{found:?}");
        }
        let boxed = Box::new(0u32);
        assert_eq!(places.of_data(pid, std::ptr::from_ref(&*boxed) as u64), None);
        places.keep(|_| false);
        assert!(places.0.is_empty());
        assert_eq!(program(u32::MAX >> 1), "?");
    }

    #[test]
    fn calls() {
        let ends = |bytes: &[u8]| {
            let mut before = [0x90; 7];
            before[7 - bytes.len()..].copy_from_slice(bytes);
            call_ends_at(&before)
        };
        assert!(ends(&[0xe8, 1, 2, 3, 4])); // call near
        assert!(ends(&[0xff, 0xd0])); // call *%rax
        assert!(ends(&[0xff, 0x10])); // call *(%rax)
        assert!(ends(&[0xff, 0x50, 8])); // call *8(%rax)
        assert!(ends(&[0xff, 0x15, 1, 2, 3, 4])); // call *x(%rip)
        assert!(ends(&[0xff, 0x14, 0xc3])); // call *(%rbx,%rax,8)
        assert!(ends(&[0xff, 0x94, 0xc3, 1, 2, 3, 4]));
        assert!(!ends(&[0xff, 0xe0])); // jmp *%rax
        assert!(!ends(&[0x89, 0xc8]));
    }

    #[test]
    fn texts() {
        let mut place =
            Place { object: "a.so".into(), offset: 18, symbol: None, behind: 0, line: None };
        assert_eq!(place.text(), "a.so+0x12");
        place.symbol = Some("f".into());
        place.line = Some("f.c:3".into());
        assert_eq!(place.text(), "f+0 a.so f.c:3");
    }
}
