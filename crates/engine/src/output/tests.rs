use super::*;
use crate::testing::job;

#[test]
fn batches_that_begin_at_the_same_time_open_one_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    Output::open(&job("a", folder.path(), OutputKind::Folder)).expect("opened");
                }
            });
        }
    });
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
}

#[test]
fn a_source_is_not_replaced_at_the_moment_of_writing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, link) = (folder.path().join("source.fits"), folder.path().join("b.fits"));
    std::fs::write(&source, b"precious").expect("written");
    std::fs::hard_link(&source, &link).expect("linked");
    for overwrite in [false, true] {
        let of_source = job(&source.display().to_string(), folder.path(), OutputKind::Folder);
        let output = Output::open(&Job { overwrite, ..of_source }).expect("opened");
        for name in ["source.fits", "b.fits"] {
            let error = output.put(name, b"cut").expect_err("refused");
            let is_expected = match overwrite {
                true => matches!(error, EngineError::OutputIsSource { .. }),
                false => matches!(error, EngineError::OutputExists { .. }),
            };
            assert!(is_expected, "{error}");
        }
        output.put(if overwrite { "c.fits" } else { "d.fits" }, b"cut").expect("written");
    }
    assert_eq!(std::fs::read(&source).expect("read"), b"precious");
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 4);
}

#[test]
fn an_archive_is_seen_when_it_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in [OutputKind::Zip, OutputKind::Tar, OutputKind::Fits] {
        let path = folder.path().join(format!("{kind:?}"));
        std::fs::write(&path, b"old").expect("written");
        for overwrite in [false, true] {
            let output = Output::open(&Job { overwrite, ..job("a", &path, kind) }).expect("opened");
            output.put("a", b"cut").expect("written");
            assert_eq!(std::fs::read(&path).expect("read"), b"old");
            let manifest = folder.path().join("manifest");
            std::fs::write(&manifest, b"manifest").expect("written");
            match output.close(Some(&manifest)) {
                Ok(()) => assert!(overwrite),
                Err(EngineError::OutputExists { .. }) => assert!(!overwrite),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(std::fs::metadata(&path).expect("there").len() > 100);
        assert!(!part_path(&path).exists());
    }
}
