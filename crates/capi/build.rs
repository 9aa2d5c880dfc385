//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // By this name programs find it at run time: it changes when they must be built anew.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libswathe.so.0");
        // Crates that are libraries for C, too, would show their functions.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    }
}
