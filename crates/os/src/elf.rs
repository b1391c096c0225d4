//! Properties of ELF files: the loader, and where the code is.

use object::Endianness;
use object::elf;
use object::read::ReadRef;
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};

type Header = elf::FileHeader64<Endianness>;

/// An ELF file for this machine (x86-64, little-endian).
#[derive(Default)]
pub struct Elf {
    /// Program interpreter (dynamic loader). None: a static program, or a library without one.
    pub interpreter: Option<String>,
    /// Needed libraries (DT_NEEDED).
    pub needed: Vec<String>,
    /// File offsets and lengths of the executable segments.
    pub code: Vec<(usize, usize)>,
    /// A .note.gnu.property says that the code supports user shadow stacks.
    pub shadow_stack: bool,
}

pub enum Kind {
    /// x86-64
    Elf(Elf),
    /// An ELF file of another machine or class, which the text describes.
    OtherMachine(String),
    /// A `#!` line: interpreter and optional argument.
    Script { interpreter: String, argument: Option<String> },
    /// An empty file, or text without `#!`, which shells run themselves.
    Text,
    /// Another format, which only the kernel may know (binfmt_misc).
    Unknown,
}

/// Classify a program by the content of its file. Reads little of it: programs can be large.
pub fn classify<'data>(data: impl ReadRef<'data>) -> Kind {
    const FRONT: u64 = 4096;
    let length = data.len().unwrap_or_default();
    let front = data.read_bytes_at(0, length.min(FRONT)).unwrap_or_default();
    if let Some(line) = front.strip_prefix(b"#!") {
        return script(line);
    }
    if !front.starts_with(&elf::ELFMAG) {
        // Decide like bash: a NUL in the first line means that this is no text.
        let first = front.iter().take(256).take_while(|&&b| b != b'\n');
        return if first.into_iter().any(|&b| b == 0) { Kind::Unknown } else { Kind::Text };
    }
    if front.len() < 20 || front[4] != elf::ELFCLASS64 || front[5] != elf::ELFDATA2LSB {
        let bits = if front.get(4) == Some(&elf::ELFCLASS32) { "32-bit" } else { "foreign" };
        return Kind::OtherMachine(format!("a {bits} ELF file"));
    }
    let machine = u16::from_le_bytes([front[18], front[19]]);
    if machine != elf::EM_X86_64 {
        return Kind::OtherMachine(format!("an ELF file for machine number {machine}"));
    }
    match parse(data) {
        Ok(elf) => Kind::Elf(elf),
        Err(_) => Kind::Unknown,
    }
}

/// Parse the line after `#!` like the kernel: the first word is the interpreter, the rest is one
/// argument.
fn script(line: &[u8]) -> Kind {
    let end = line.iter().position(|&b| b == b'\n').unwrap_or(line.len());
    let line = String::from_utf8_lossy(&line[..end]);
    let line = line.trim_matches([' ', '\t', '\r']);
    let (interpreter, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    if interpreter.is_empty() {
        return Kind::Text;
    }
    let argument = argument.trim_matches([' ', '\t']);
    Kind::Script {
        interpreter: interpreter.to_string(),
        argument: (!argument.is_empty()).then(|| argument.to_string()),
    }
}

fn parse<'data>(data: impl ReadRef<'data>) -> object::Result<Elf> {
    let header = Header::parse(data)?;
    let endian = header.endian()?;
    let mut elf = Elf::default();
    let segments = header.program_headers(endian, data)?;
    for segment in segments {
        if let Some(name) = segment.interpreter(endian, data)? {
            elf.interpreter = Some(String::from_utf8_lossy(name).into_owned());
        }
        if segment.p_type(endian) == elf::PT_LOAD && segment.p_flags(endian) & elf::PF_X != 0 {
            elf.code.push((segment.p_offset(endian) as usize, segment.p_filesz(endian) as usize));
        }
        if let Some(entries) = segment.dynamic(endian, data)? {
            elf.needed = needed(entries, segments, endian, data);
        }
        elf.shadow_stack |= wants_shadow_stack(segment, endian, data);
    }
    Ok(elf)
}

/// Return the names in DT_NEEDED. Uses the segments: section headers may have been stripped.
fn needed<'data>(
    entries: &[elf::Dyn64<Endianness>],
    segments: &[elf::ProgramHeader64<Endianness>],
    endian: Endianness,
    data: impl ReadRef<'data>,
) -> Vec<String> {
    let address =
        entries.iter().find(|d| d.tag32(endian) == Some(elf::DT_STRTAB)).map(|d| d.d_val(endian));
    let strings = address.and_then(|address| {
        let holds = |s: &&elf::ProgramHeader64<Endianness>| {
            s.p_type(endian) == elf::PT_LOAD
                && (s.p_vaddr(endian)..).contains(&address)
                && address - s.p_vaddr(endian) < s.p_filesz(endian)
        };
        let segment = segments.iter().find(holds)?;
        segment.p_offset(endian).checked_add(address - segment.p_vaddr(endian))
    });
    let (Some(strings), Ok(end)) = (strings, data.len()) else {
        return Vec::new();
    };
    entries
        .iter()
        .filter(|d| d.tag32(endian) == Some(elf::DT_NEEDED))
        .filter_map(|d| {
            data.read_bytes_at_until(strings.checked_add(d.d_val(endian))?..end, 0).ok()
        })
        .map(ui::terminal::c_string)
        .collect()
}

/// Return whether a note of the segment says that the code supports user shadow stacks.
fn wants_shadow_stack<'data>(
    segment: &elf::ProgramHeader64<Endianness>,
    endian: Endianness,
    data: impl ReadRef<'data>,
) -> bool {
    let notes = segment.notes(endian, data).ok().flatten().into_iter().flatten().flatten();
    let mut properties = notes.filter_map(|n| n.gnu_properties(endian)).flatten().flatten();
    properties.any(|property| {
        property.pr_type() == elf::GNU_PROPERTY_X86_FEATURE_1_AND
            && property
                .data_u32(endian)
                .is_ok_and(|bits| bits & elf::GNU_PROPERTY_X86_FEATURE_1_SHSTK != 0)
    })
}

/// Count the `syscall` instructions of the code. For each `0f 05`, decodes towards it from several
/// places a little before. x86 code falls into step within a few instructions, so most attempts
/// agree on whether an instruction begins there. This can be wrong for data between functions; the
/// runtime checks more closely.
pub fn count_syscalls(data: &[u8], elf: &Elf) -> usize {
    let decoder = zydis::Decoder::new64();
    let mut count = 0;
    for &(offset, length) in &elf.code {
        let end = offset.saturating_add(length).min(data.len());
        let code = &data[offset.min(end)..end];
        let candidates = code.windows(2).enumerate().filter(|(_, w)| *w == [0x0f, 0x05]);
        count += candidates.filter(|&(at, _)| begins_instruction(&decoder, code, at)).count();
    }
    count
}

fn begins_instruction(decoder: &zydis::Decoder, code: &[u8], target: usize) -> bool {
    const ATTEMPTS: usize = 8;
    let first = target.saturating_sub(64);
    let hits = (0..ATTEMPTS)
        .filter(|attempt| {
            let mut at = first + attempt;
            while at < target {
                at += match decoder.decode_first::<zydis::NoOperands>(&code[at..]) {
                    Ok(Some(instruction)) => usize::from(instruction.length),
                    _ => 1,
                };
            }
            at == target
        })
        .count();
    hits * 2 > ATTEMPTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_lines() {
        let parts = |text: &str| match classify(text.as_bytes()) {
            Kind::Script { interpreter, argument } => Some((interpreter, argument)),
            _ => None,
        };
        assert_eq!(parts("#!/bin/sh\necho"), Some(("/bin/sh".into(), None)));
        assert_eq!(
            parts("#! /usr/bin/env  -S a b \n"),
            Some(("/usr/bin/env".into(), Some("-S a b".into())))
        );
        assert_eq!(parts("#!/bin/sh"), Some(("/bin/sh".into(), None)));
        assert_eq!(parts("#!\n"), None);
    }

    #[test]
    fn kinds() {
        assert!(matches!(classify(&b""[..]), Kind::Text));
        assert!(matches!(classify(&b"echo hello\n\0"[..]), Kind::Text));
        assert!(matches!(classify(&b"MZ\0\0"[..]), Kind::Unknown));
        assert!(matches!(classify(&b"\x7fELF"[..]), Kind::OtherMachine(_)));
        assert!(matches!(classify(&b"\x7fELF\x01\x01\x01"[..]), Kind::OtherMachine(_)));
        // A header of x86-64 in a file that ends before its tables.
        let mut cut = b"\x7fELF\x02\x01\x01".to_vec();
        cut.resize(18, 0);
        cut.extend([62, 0]);
        assert!(matches!(classify(&*cut), Kind::Unknown));
    }

    #[test]
    fn syscalls_among_other_bytes() {
        // mov $0x50f,%eax contains the two bytes in an immediate; only the second pair is a system
        // call.
        let mut code = vec![0x90; 64];
        code.extend([0xb8, 0x0f, 0x05, 0x00, 0x00]);
        code.extend([0x90; 64]);
        code.extend([0x0f, 0x05, 0xc3]);
        let elf = Elf { code: vec![(0, code.len())], ..Elf::default() };
        assert_eq!(count_syscalls(&code, &elf), 1);
    }

    #[test]
    fn own_executable() {
        let data = std::fs::read("/proc/self/exe").expect("readable");
        let Kind::Elf(elf) = classify(&*data) else { panic!("not recognised") };
        assert!(!elf.code.is_empty());
        assert!(elf.needed.iter().any(|n| n == "libc.so.6"));
        assert_eq!(elf.interpreter.as_deref(), Some("/lib64/ld-linux-x86-64.so.2"));
    }
}
