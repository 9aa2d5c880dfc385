use super::*;
use crate::job::{OutputKind, Target};
use crate::object::Selector;
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
    let target =
        |name: &str| Target { file: 0, hdu: 0, pixels: [0, 0, 1, 1], name: name.into(), id: None };
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
        let lines = trace.lines().filter(|line| line.contains(&format!(" NL.EVNT={event} ")));
        let lines: Vec<&str> = lines.collect();
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
        assert_eq!(workers(&job, units), expected, "{file}: {units} units, {threads} threads");
    }
}
