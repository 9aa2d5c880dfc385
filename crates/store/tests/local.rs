//! Local sources.
#![allow(clippy::single_range_in_vec_init, reason = "reading one range is a case too")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use swathe_store::open;
use swathe_store_api::StoreError;
use tempfile::TempDir;

fn file(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, (0..200).collect::<Vec<u8>>()).unwrap();
    (folder, path)
}

fn error(url: &str) -> StoreError {
    open(url).map(|source| source.len()).unwrap_err()
}

#[test]
fn ranges_come_in_order() {
    let (_folder, path) = file("a.fits");
    let source = open(path.to_str().unwrap()).unwrap();
    assert_eq!((source.url(), source.len()), (path.to_str().unwrap(), 200));
    assert!(source.is_local());
    let pieces =
        source.fetch(vec![190..200, 3..3, 0..2], 1).map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(pieces[0], (190..200).collect::<Vec<u8>>());
    assert_eq!((pieces[1].len(), &pieces[2][..]), (0, &[0, 1][..]));
    let mut buffer = [0; 3];
    source.read_exact_at(197, &mut buffer).unwrap();
    assert_eq!(buffer, [197, 198, 199]);
}

#[test]
fn a_relative_path_becomes_absolute() {
    // Tests run in the folder of the crate.
    assert!(open("Cargo.toml").unwrap().url().starts_with('/'));
}

#[test]
fn what_is_missing_is_not_found() {
    let (folder, path) = file("a.fits");
    let missing = folder.path().join("b.fits");
    let error_of_missing = error(missing.to_str().unwrap());
    assert!(matches!(error_of_missing, StoreError::NotFound { .. }));
    assert!(error_of_missing.to_string().contains("b.fits"));
    let below_file = path.join("c.fits");
    assert!(matches!(error(below_file.to_str().unwrap()), StoreError::NotFound { .. }));
}

#[test]
fn a_folder_is_unsupported() {
    let folder = tempfile::tempdir().unwrap();
    let error = error(folder.path().to_str().unwrap());
    assert!(matches!(error, StoreError::Unsupported { .. }));
    assert!(error.to_string().ends_with("a folder, not a file"));
}

#[test]
fn a_pipe_is_unsupported_and_does_not_hang() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe").to_str().unwrap().to_string();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(error(&pipe)));
    let error = receive.recv_timeout(Duration::from_secs(120)).expect("opening a pipe hangs");
    assert!(error.to_string().ends_with("not a regular file"), "{error}");
}

#[test]
fn ranges_past_the_end_are_short() {
    let (_folder, path) = file("a.fits");
    let source = open(path.to_str().unwrap()).unwrap();
    let error = source.read_exact_at(195, &mut [0; 10]).unwrap_err();
    assert!(error.to_string().ends_with("expected 10 bytes from byte 195, found 5"), "{error}");
    #[allow(clippy::reversed_empty_ranges)]
    for range in [195..205, 201..201, 5..4, 0..u64::MAX, u64::MAX..u64::MAX] {
        let error =
            source.fetch(vec![0..1, range.clone()], 1).collect::<Result<Vec<_>, _>>().unwrap_err();
        assert!(matches!(error, StoreError::ShortRead { .. }), "{range:?}");
    }
    source.fetch(vec![200..200], 1).map(Result::unwrap).for_each(drop);
}

#[test]
fn file_urls_are_decoded() {
    let (_folder, path) = file("50% a+b \u{e9}.fits");
    let plain = path.to_str().unwrap();
    let url = plain.replace('%', "%25").replace(' ', "%20").replace('\u{e9}', "%C3%a9");
    for url in [format!("file://{url}"), format!("file://localhost{url}")] {
        assert_eq!(open(&url).unwrap().url(), plain);
    }
    // A percent sign that escapes nothing stands for itself, and a plain path is not decoded.
    assert_eq!(open(&format!("file://{plain}")).unwrap().url(), plain);
    assert!(matches!(error(&url), StoreError::NotFound { .. }));
    for url in ["file://host/a.fits", "file://a.fits"] {
        assert!(matches!(error(url), StoreError::Unsupported { .. }), "{url}");
    }
}

#[test]
fn unknown_schemes_are_unsupported() {
    let error = error("gopher://host/a.fits");
    assert!(error.to_string().contains("cannot read gopher:// URLs"), "{error}");
}

#[test]
fn a_file_cut_after_opening_is_short() {
    let (_folder, path) = file("a.fits");
    let source = open(path.to_str().unwrap()).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    for result in [
        source.fetch(vec![0..10, 95..105], 1).collect::<Result<Vec<_>, _>>().map(drop),
        source.read_exact_at(95, &mut [0; 10]),
    ] {
        let error = result.unwrap_err();
        assert!(error.to_string().ends_with("expected 10 bytes from byte 95, found 5"), "{error}");
    }
    source.fetch(vec![0..100], 1).map(Result::unwrap).for_each(drop);
}

#[test]
fn versions_differ_when_the_file_does() {
    let (_folder, path) = file("a.fits");
    let version = || open(path.to_str().unwrap()).unwrap().version().clone();
    let before = version();
    assert_eq!(version(), before);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_ne!(version(), before);
}

#[test]
fn a_file_we_may_not_read_is_forbidden() {
    let (_folder, path) = file("a.fits");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        eprintln!("skipped: this user, probably root, may read everything");
        return;
    }
    assert!(matches!(error(path.to_str().unwrap()), StoreError::Forbidden { .. }));
}
