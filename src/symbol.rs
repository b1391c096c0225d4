//! Which function of a file an offset lies in.

use std::path::Path;

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

/// The name of the function, demangled, and how far behind its beginning the byte at `offset` of the file is. None if the
/// file cannot be read or has no symbol there: it may be stripped.
pub fn function_at(file: &Path, offset: u64) -> Option<(String, u64)> {
    let data = std::fs::read(file).ok()?;
    let object = object::File::parse(&*data).ok()?;
    let address = object.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        (offset >= start && offset - start < size).then(|| segment.address() + (offset - start))
    })?;
    let before = |symbol: &object::Symbol| {
        symbol.kind() == SymbolKind::Text && symbol.address() <= address && symbol.address() != 0
    };
    let symbol =
        object.symbols().chain(object.dynamic_symbols()).filter(before).max_by_key(|s| s.address())?;
    // A symbol without a size may be anything up to the next.
    if symbol.size() != 0 && address >= symbol.address() + symbol.size() {
        return None;
    }
    Some((demangled(symbol.name().ok()?), address - symbol.address()))
}

fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
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
        assert_eq!(function_at(Path::new("/nonexistent"), 0), None);
    }
}
