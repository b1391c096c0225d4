//! Libraries whose threads spin before they block, and the settings that stop the spinning. lissom
//! parks spinning threads by itself, but where threads outnumber CPUs, blocking at once costs even
//! less.

/// A library with such a setting.
struct Knob {
    library: &'static str,
    /// Prefixes of its file names.
    files: &'static [&'static str],
    /// Environment variable or option of the program, with its value.
    setting: &'static str,
}

const KNOBS: &[Knob] = &[
    Knob {
        library: "OpenBLAS",
        files: &["libopenblas", "libscipy_openblas"],
        setting: "OPENBLAS_THREAD_TIMEOUT=4",
    },
    Knob {
        library: "ONNX Runtime",
        files: &["libonnxruntime", "onnxruntime_pybind11_state"],
        setting: "the session option session.intra_op.allow_spinning=0",
    },
    Knob {
        library: "GNU OpenMP",
        files: &["libgomp"],
        setting: "GOMP_SPINCOUNT=0 (lissom run sets it by default)",
    },
    Knob {
        library: "LLVM's or Intel's OpenMP",
        files: &["libomp", "libiomp5"],
        setting: "KMP_BLOCKTIME=0 (lissom run sets it by default)",
    },
];

/// Find the library of a file by the file's name. None: it has no setting.
fn of(file: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|k| k.files.iter().any(|f| file.starts_with(f)))
}

/// Return the settings for the libraries in `files`, sorted and without duplicates, in the form
/// `OpenBLAS: OPENBLAS_THREAD_TIMEOUT=4`.
pub fn named<'a>(files: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> =
        files.filter_map(of).map(|k| format!("{}: {}", k.library, k.setting)).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_once() {
        let files =
            ["libscipy_openblas64_-1c0b.so", "libc.so.6", "libopenblas.so.0", "libgomp.so.1"];
        assert_eq!(
            named(files.into_iter()),
            [
                "GNU OpenMP: GOMP_SPINCOUNT=0 (lissom run sets it by default)",
                "OpenBLAS: OPENBLAS_THREAD_TIMEOUT=4"
            ]
        );
        assert!(of("onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so").is_some());
    }
}
