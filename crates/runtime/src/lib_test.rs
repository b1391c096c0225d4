//! Properties of the runtime library that loaders require.

use object::Endianness;
use object::read::elf::FileHeader as _;
use os::elf::Kind;

type Header = object::elf::FileHeader64<Endianness>;

/// The binary of the packages is built with a newer glibc than that of its users. This test
/// fails if the runtime calls a function that needs a newer one than 2.31.
#[test]
fn the_runtime_is_content_with_glibc_2_31() {
    // A copy is aligned, as headers require.
    let data = &*crate::abi::RUNTIME.to_vec();
    let Kind::Elf(runtime) = os::elf::classify(data) else { panic!("not recognised") };
    assert_eq!(runtime.needed, ["libc.so.6"]);
    let header = Header::parse(data).expect("a header");
    let endian = header.endian().expect("an order of bytes");
    let sections = header.sections(endian, data).expect("sections");
    let (mut libraries, names) =
        sections.gnu_verneed(endian, data).expect("versions").expect("some");
    let names = sections.strings(endian, data, names).expect("names");
    let mut wanted = Vec::new();
    while let Some((_, mut versions)) = libraries.next().expect("a library") {
        while let Some(version) = versions.next().expect("a version") {
            wanted.push(
                String::from_utf8_lossy(version.name(endian, names).expect("a name")).into_owned(),
            );
        }
    }
    assert!(!wanted.is_empty());
    let number = |name: &str| -> Option<u32> {
        name.strip_prefix("GLIBC_2.")?.split('.').next()?.parse().ok()
    };
    let new: Vec<&String> =
        wanted.iter().filter(|name| number(name).is_none_or(|n| n > 31)).collect();
    assert!(new.is_empty(), "{new:?}");
}

/// musl's loader ends a program whose preloaded library has an unknown relocation, such as that
/// of an indirect function.
#[test]
fn every_loader_knows_the_runtimes_relocations() {
    use object::read::elf::SectionHeader;
    const RELA: u32 = 4; // SHT_RELA
    // 64, GLOB_DAT, JUMP_SLOT, RELATIVE, TPOFF64 of R_X86_64_*
    const KNOWN: &[u32] = &[1, 6, 7, 8, 18];
    let data = &*crate::abi::RUNTIME.to_vec();
    let header = Header::parse(data).expect("a header");
    let endian = header.endian().expect("an order of bytes");
    let sections = header.sections(endian, data).expect("sections");
    let mut kinds: Vec<u32> = Vec::new();
    for section in sections.iter().filter(|s| s.sh_type.get(endian) == RELA) {
        let entries = section.data(endian, data).expect("its bytes").chunks_exact(24);
        kinds.extend(entries.map(|e| u32::from_le_bytes([e[8], e[9], e[10], e[11]])));
    }
    assert!(!kinds.is_empty());
    kinds.retain(|kind| !KNOWN.contains(kind));
    assert!(kinds.is_empty(), "{kinds:?}");
}

/// musl's loader ends a program whose preloaded library needs a function that musl lacks.
#[test]
fn every_libc_has_the_functions_that_the_runtime_calls() {
    use object::{Object as _, ObjectSymbol as _};
    const IN_EACH: &[&str] = &["__errno_location", "dl_iterate_phdr", "getauxval", "sched_yield"];
    let data = &*crate::abi::RUNTIME.to_vec();
    let file = object::File::parse(data).expect("an ELF file");
    let needed = file.dynamic_symbols().filter(|s| s.is_undefined() && !s.is_weak());
    let names: Vec<&str> = needed.filter_map(|s| s.name().ok()).filter(|n| !n.is_empty()).collect();
    assert!(!names.is_empty());
    let rare: Vec<_> = names.iter().filter(|n| !IN_EACH.contains(n)).collect();
    assert!(rare.is_empty(), "make these weak: {rare:?}");
}
