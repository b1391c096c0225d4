//! Functions, lines and variables at offsets of files.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use addr2line::gimli;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use ui::terminal::plain;

/// Larger files are not read.
const LARGEST: u64 = 2 << 30;

/// Read a file. The path may come from a program, so only a regular file is opened: opening a
/// device may have effects, and other files have no end. The file is read, not mapped, because
/// another process could truncate it meanwhile.
fn read(file: &Path) -> Option<Vec<u8>> {
    let found = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(file)
        .ok()?;
    let about = found.metadata().ok().filter(|m| m.is_file() && m.len() <= LARGEST)?;
    let mut bytes = Vec::with_capacity(about.len() as usize);
    // Open the same file, even if the path now leads to another.
    let same = File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()?;
    same.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Return the function at `offset` of the file: its name, demangled, and the offset in it. None:
/// the file cannot be read, or has no symbol there, for example because it is stripped.
pub fn function_at(file: &Path, offset: u64) -> Option<(String, u64)> {
    code_at(file, offset).0
}

/// Return the function at `offset` of the file, and `file.c:12` if there is debug information.
/// Reads the file once.
pub fn code_at(file: &Path, offset: u64) -> (Option<(String, u64)>, Option<String>) {
    let data = read(file).unwrap_or_default();
    let Ok(object) = object::File::parse(&*data) else { return (None, None) };
    let Some(address) = address_in(&object, offset) else { return (None, None) };
    (function_in(&object, address), line_in(&object, address))
}

fn function_in(object: &object::File, address: u64) -> Option<(String, u64)> {
    let before = |symbol: &object::Symbol| {
        symbol.kind() == SymbolKind::Text && symbol.address() <= address && symbol.address() != 0
    };
    let symbol = object
        .symbols()
        .chain(object.dynamic_symbols())
        .filter(before)
        .max_by_key(|s| s.address())?;
    // A symbol without a size may extend to the next one.
    if symbol.size() != 0 && address >= symbol.address() + symbol.size() {
        return None;
    }
    Some((demangled(symbol.name().ok()?), address - symbol.address()))
}

fn line_in(object: &object::File, address: u64) -> Option<String> {
    object.section_by_name(".debug_line")?;
    let section = |id: gimli::SectionId| {
        let data = object.section_by_name(id.name()).and_then(|s| s.uncompressed_data().ok());
        Ok::<_, gimli::Error>(data.unwrap_or_default())
    };
    let sections = gimli::DwarfSections::load(section).ok()?;
    let dwarf = sections.borrow(|data| gimli::EndianSlice::new(data, gimli::LittleEndian));
    let context = addr2line::Context::from_dwarf(dwarf).ok()?;
    let location = context.find_location(address).ok()??;
    let name = plain(&Path::new(location.file?).file_name()?.to_string_lossy());
    Some(format!("{name}:{}", location.line?))
}

fn address_in(object: &object::File, offset: u64) -> Option<u64> {
    object.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        (offset >= start && offset - start < size).then(|| segment.address() + (offset - start))
    })
}

/// Return the variable at `offset` from where the file begins in memory: its name, demangled, and
/// the offset in it.
pub fn variable_at(file: &Path, offset: u64) -> Option<(String, u64)> {
    let data = read(file)?;
    let object = object::File::parse(&*data).ok()?;
    // Loaders map whole pages.
    let first = object.segments().map(|s| s.address()).min()? & !0xfff;
    let address = first + offset;
    let is_it = |symbol: &object::Symbol| {
        let is_variable = symbol.kind() == SymbolKind::Data && symbol.address() != 0;
        is_variable && symbol.address() <= address && address - symbol.address() < symbol.size()
    };
    let symbol = object.symbols().chain(object.dynamic_symbols()).find(is_it)?;
    Some((demangled(symbol.name().ok()?), address - symbol.address()))
}

fn demangled(name: &str) -> String {
    plain(&demangled_as_it_is(name))
}

fn demangled_as_it_is(name: &str) -> String {
    // Only these prefixes mark mangled names in ELF files. Without this check, the C function `f`
    // would become the C++ type `float`, and `RC3abc` the Rust crate `abc`.
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return name.to_string();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if !name.starts_with("_Z") {
        return name.to_string();
    }
    match cpp_demangle::Symbol::new(name) {
        Ok(cxx) => cxx.demangle().unwrap_or_else(|_| name.to_string()),
        Err(_) => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(demangled("pthread_spin_lock"), "pthread_spin_lock");
        assert_eq!(demangled("_ZN3foo3barEv"), "foo::bar()");
        assert_eq!(demangled("_RNvC3foo3bar"), "foo::bar");
        assert_eq!(demangled("_ZN3foo3bar17h0123456789abcdefE"), "foo::bar");
        let in_c = ["f", "v", "d", "i", "St", "RC3abc", "RNvC3foo3bar", "ZN3foo3barE", "_Zebra"];
        for plain in in_c.into_iter().chain(["_R", "_Run", "__ZN3foo3barE"]) {
            assert_eq!(demangled(plain), plain);
        }
        for file in ["/nonexistent", "/dev/zero", "/", "/proc/self/mem"] {
            assert_eq!(function_at(Path::new(file), 0), None);
        }
    }
}
