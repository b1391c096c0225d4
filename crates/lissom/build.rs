//! Link parts of the runtime for `lissom doctor`: the condition for switches in user space, and the
//! search for system calls.

fn main() {
    let runtime = build::root().join("runtime");
    build::for_the_tools().file(runtime.join("prim/vector.c")).compile("lissom_vector");

    println!("cargo::rerun-if-changed=src/doctor/survey.c");
    let mut survey = build::for_the_tools();
    survey.define("_GNU_SOURCE", None).flag("-Wno-missing-field-initializers");
    survey.files(build::sources(&runtime.join("patch")));
    survey.file(runtime.join("prim/maps.c")).file(runtime.join("prim/lock.c"));
    survey.file("src/doctor/survey.c").compile("lissom_survey");
}
