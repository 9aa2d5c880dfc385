use super::*;
use crate::job::{ObjectCopy, OutputKind, ReplicaStore, Replicas, Target};
use crate::selector::Selector;
use crate::testing::{job, path_in, write_pixel};

/// Panics if the name of an object asks for it.
pub(super) fn may_panic(url: &str) {
    assert!(!url.ends_with("panics.fits"), "it was to panic");
}

#[test]
fn a_unit_that_panics_tells_how_its_stages_and_targets_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path_in(&folder, "panics.fits");
    write_pixel(&file);
    let target = |name: &str| Target {
        file: 0,
        hdu: 0,
        planes: 0,
        pixels: [0, 0, 1, 1],
        name: name.into(),
        id: None,
    };
    let (output, run) = (path_in(&folder, "out"), path_in(&folder, "run.ulm"));
    std::fs::create_dir(&output).expect("made");
    let job = Job {
        selectors: vec![Selector::FirstImage],
        targets: vec![target("a"), target("b")],
        ..job(&file, output, OutputKind::Folder)
    };
    swathe_trace::start(&run, "p", "h", None).expect("started");
    let output = Arc::new(Output::open(&job).expect("opened"));
    let batch = Batch::start(job, output, Cancel::default(), &[]).expect("begun");
    let mut rows = Vec::new();
    while let Some(more) = batch.poll(Duration::from_millis(10)) {
        rows.extend(more);
    }
    batch.finish().expect("finished");
    swathe_trace::stop().expect("recorded");
    assert_eq!(rows.iter().filter(|row| row.outcome.is_err()).count(), 2);
    let trace = std::fs::read_to_string(run).expect("read");
    // The first target had begun; its start is not recorded again.
    for (event, count, fails) in [
        ("OPEN_END", 1, false),
        ("ASSEMBLE_START", 1, false),
        ("ASSEMBLE_END", 1, true),
        ("CUT_START", 2, false),
        ("CUT_END", 2, true),
    ] {
        // Other tests of this process are recorded, too.
        let is_ours = |line: &&str| {
            line.contains(&format!(" NL.EVNT={event} ")) && line.contains("panics.fits")
        };
        let lines: Vec<&str> = trace.lines().filter(is_ours).collect();
        assert_eq!(lines.len(), count, "{event}: {trace}");
        if fails {
            let is_failure =
                |line: &&str| line.contains("RESULT=error") && line.contains("was to panic");
            assert!(lines.iter().all(is_failure), "{event}: {trace}");
        }
    }
}

#[test]
fn objects_of_servers_are_read_in_few_rounds_of_as_many_each() {
    // Of a server that was not probed eight streams are taken for granted.
    for (file, threads, units, expected) in [
        ("http://server.example/a.fits", 2, 1, 1),
        ("http://server.example/a.fits", 2, 8, 8),
        ("http://server.example/a.fits", 2, 9, 5),
        ("http://server.example/a.fits", 2, 20, 7),
        ("http://server.example/a.fits", 2, 1000, 8),
        ("http://server.example/a.fits", 6, 9, 6),
        ("/data/a.fits", 2, 9, 2),
        ("/data/a.fits", 6, 3, 3),
        ("/data/a.fits", 6, 0, 1),
    ] {
        let job = Job { threads, ..job(file, "out", OutputKind::Folder) };
        assert_eq!(
            workers(&job, &job.files, units),
            expected,
            "{file}: {units} units, {threads} threads"
        );
    }
}

/// The rows of a batch of one target of each of these objects, by target, and its notes.
fn cut_copies(copies: &[&[&str]]) -> (Vec<Row>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = path_in(&folder, "out");
    std::fs::create_dir(&output).expect("made");
    let copy = |(store, url): (usize, &&str)| ObjectCopy { store, url: (*url).into() };
    let copies: Vec<Vec<ObjectCopy>> =
        copies.iter().map(|urls| urls.iter().enumerate().map(copy).collect()).collect();
    let files: Vec<String> = copies.iter().map(|copies| copies[0].url.clone()).collect();
    let store = |name: &str| ReplicaStore { name: name.into(), target_s: 0.01 };
    let target = |file: usize| Target {
        file,
        hdu: 0,
        planes: 0,
        pixels: [0, 0, 1, 1],
        name: format!("{file}.fits"),
        id: None,
    };
    let job = Job {
        selectors: vec![Selector::FirstImage],
        targets: (0..files.len()).map(target).collect(),
        replicas: Some(Replicas { stores: ["a", "b"].map(store).into(), copies }),
        ..job(&files[0], output, OutputKind::Folder)
    };
    let job = Job { files, ..job };
    let output = Arc::new(Output::open(&job).expect("opened"));
    let batch = Batch::start(job, output, Cancel::default(), &[]).expect("begun");
    let mut rows = Vec::new();
    while let Some(more) = batch.poll(Duration::from_millis(10)) {
        rows.extend(more);
    }
    let notes = batch.finish().expect("finished").notes;
    rows.sort_by_key(|row| row.target);
    (rows, notes)
}

#[test]
fn a_target_whose_store_fails_is_cut_from_another_copy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| path_in(&folder, name);
    let (good, missing, short) = (path("good.fits"), path("gone.fits"), path("short.fits"));
    write_pixel(&good);
    // The header promises a pixel, and the file ends before it.
    std::fs::write(&short, &std::fs::read(&good).expect("read")[..2880]).expect("written");
    let (rows, notes) = cut_copies(&[
        &[&missing, &good],
        &[&good, &missing],
        &[&missing, &missing],
        &[&missing],
        // Damage is no failure of the store.
        &[&short, &good],
    ]);
    let stores: Vec<Option<usize>> = rows.iter().map(|row| row.store).collect();
    assert_eq!(stores, [Some(1), None, Some(1), None, None]);
    let status =
        |row: &Row| row.outcome.as_ref().err().map_or("ok", super::EngineError::status).to_string();
    let statuses: Vec<String> = rows.iter().map(status).collect();
    assert_eq!(statuses, ["ok", "ok", "missing", "missing", "error"]);
    let both = rows[2].outcome.as_ref().expect_err("both lack it").to_string();
    assert!(both.contains("gone.fits: not found; its copy: ") && both.ends_with("not found"));
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("2 targets of store a were read from b: a failed: "), "{notes:?}");
}
