//! Test whether threads can be switched in user space. Uses the runtime's own condition:
//! `runtime/prim/vector.c`, linked into this binary.

use super::Finding;

unsafe extern "C" {
    fn vector_state(hwcap2: u64, mask: *mut u64) -> u32;
}

/// Values of `enum vector_verdict`.
const FITS: u32 = 0;
const NO_FSGSBASE: u32 = 1;
const NO_XSAVEC: u32 = 2;

pub fn finding() -> Finding {
    let mut mask = 0;
    // SAFETY: getauxval cannot fail; `mask` is written during this call only.
    let verdict = unsafe { vector_state(libc::getauxval(libc::AT_HWCAP2), &mut mask) };
    judge(verdict)
}

fn judge(verdict: u32) -> Finding {
    let what = "user switch";
    let (lacks, fix) = match verdict {
        FITS => return Finding::ok(what, "threads can be switched in user space"),
        NO_FSGSBASE => (
            "no fsgsbase",
            "use Linux 5.9 or newer, without nofsgsbase on its command line, and a CPU of 2012 or \
             newer",
        ),
        NO_XSAVEC => (
            "no XSAVEC",
            "remove noxsave and noxsaves from the kernel's command line, use a CPU of 2016 or newer, or make the \
             hypervisor offer xsavec to its guest",
        ),
        _ => (
            "vector registers larger than the save area of a switch",
            "disable some of them with clearcpuid= on the kernel's command line",
        ),
    };
    Finding::limited(
        what,
        format!("{lacks}: every thread stays on its own kernel thread (as with --switch=kernel)"),
        fix,
    )
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn verdicts() {
        assert!(judge(FITS).state == State::Ok);
        for (verdict, text) in [(NO_FSGSBASE, "fsgsbase"), (NO_XSAVEC, "XSAVEC"), (3, "larger")] {
            let finding = judge(verdict);
            assert!(finding.state == State::Limited && finding.why.contains(text), "{verdict}");
        }
    }

    /// Without fsgsbase there is no switch, whatever the CPU.
    #[test]
    fn the_runtime_s_condition() {
        let mut mask = 1;
        // SAFETY: as above.
        assert_eq!(unsafe { vector_state(0, &mut mask) }, NO_FSGSBASE);
        assert_eq!(mask, 0);
    }
}
