//! The header in `include/` is that of the code.

use std::path::Path;

/// Set to write it anew.
const WRITES: &str = "SWATHE_TEST_WRITE_HEADER";

#[test]
fn the_header_is_that_of_the_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("settings");
    // With the modules that it names.
    let source = folder.join("src/lib.rs");
    let builder = cbindgen::Builder::new().with_config(config).with_src(source);
    let mut header = Vec::new();
    builder.generate().expect("a header").write(&mut header);
    let (header, path) =
        (String::from_utf8(header).expect("text"), folder.join("include/swathe.h"));
    if std::env::var_os(WRITES).is_some() {
        std::fs::write(&path, &header).expect("written");
    }
    let current = std::fs::read_to_string(&path).expect("read");
    let advice = format!("write it anew: {WRITES}=1 cargo test -p swathe-capi --test header");
    assert!(header == current, "include/swathe.h is not that of the code; {advice}");
}
