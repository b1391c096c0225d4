//! Properties of the runtime library that loaders require.

use object::Endianness;
use object::read::elf::FileHeader as _;
use os::elf::Kind;

type Header = object::elf::FileHeader64<Endianness>;

/// A loader ends a program whose preloaded library needs a version that its glibc lacks. All have
/// these.
#[test]
fn every_glibc_has_the_versions_that_the_runtime_needs() {
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
    wanted.retain(|name| !["GLIBC_2.2.5", "GLIBC_2.3.2"].contains(&name.as_str()));
    assert!(wanted.is_empty(), "{wanted:?}");
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

/// Loaders end a program whose preloaded library needs a function that they do not find.
#[test]
fn every_libc_has_the_functions_that_the_runtime_calls() {
    use object::{Object as _, ObjectSymbol as _};
    const IN_EACH: &[&str] = &["__errno_location", "dl_iterate_phdr", "sched_yield"];
    // Weak, since musl or old versions of glibc lack them. But glibc before 2.30 ends a program if
    // such a function is in another library than libc.so.6, as dlsym is before 2.34.
    const IN_GLIBC: &[&str] = &[
        "_ITM_deregisterTMCloneTable",
        "_ITM_registerTMCloneTable",
        "__cxa_finalize",
        "__gmon_start__",
        "__libc_stack_end",
        "__register_atfork",
        "_r_debug",
        "gnu_get_libc_version",
    ];
    let data = &*crate::abi::RUNTIME.to_vec();
    let file = object::File::parse(data).expect("an ELF file");
    let names = |is_weak: bool| -> Vec<&str> {
        let needed = file.dynamic_symbols().filter(|s| s.is_undefined() && s.is_weak() == is_weak);
        needed.filter_map(|s| s.name().ok()).filter(|n| !n.is_empty()).collect()
    };
    assert!(!names(false).is_empty());
    let rare: Vec<_> = names(false).into_iter().filter(|n| !IN_EACH.contains(n)).collect();
    assert!(rare.is_empty(), "make these weak: {rare:?}");
    let elsewhere: Vec<_> = names(true).into_iter().filter(|n| !IN_GLIBC.contains(n)).collect();
    assert!(elsewhere.is_empty(), "find these by patch_function_behind: {elsewhere:?}");
}
