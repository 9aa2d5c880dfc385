//! Cuts of generated images against plain indexing.

use proptest::prelude::*;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use swathe_array::Region;
use swathe_engine::{
    Batch, Cancel, EngineError, Job, Mode, Object, Output, OutputKind, Row, Selector, Target, cut,
    members,
};
use swathe_plan::Objective;

fn open(path: &str) -> Result<Object, EngineError> {
    Object::open(path, &swathe_store::stores(Vec::new()), false, Cancel::default())
}

/// A FITS image of 16-bit pixels that each hold their position.
fn image(shape: &[u64]) -> Vec<u8> {
    let mut cards = vec![
        format!("{:<8}= {:>20}", "SIMPLE", "T"),
        format!("{:<8}= {:>20}", "BITPIX", 16),
        format!("{:<8}= {:>20}", "NAXIS", shape.len()),
    ];
    for (axis, side) in shape.iter().enumerate() {
        cards.push(format!("{:<8}= {side:>20}", format!("NAXIS{}", axis + 1)));
    }
    cards.push("END".into());
    let mut file: Vec<u8> =
        cards.iter().flat_map(|card| format!("{card:<80}").into_bytes()).collect();
    file.resize(file.len().next_multiple_of(2880), b' ');
    let pixels: u64 = shape.iter().product();
    file.extend((0..pixels).flat_map(|pixel| (pixel as i16).to_be_bytes()));
    file.resize(file.len().next_multiple_of(2880), 0);
    file
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    path
}

/// The pixels of a box, those outside the image as `fill`.
fn expected(shape: &[u64], region: &Region, fill: i16) -> Vec<u8> {
    let pixels: u64 = region.shape().iter().product();
    (0..pixels)
        .flat_map(|mut position| {
            let (mut element, mut stride, mut inside) = (0, 1, true);
            for (axis, side) in region.shape().iter().enumerate() {
                let at = region.start[axis] + (position % side) as i64;
                position /= side;
                inside &= (0..shape[axis] as i64).contains(&at);
                element += at * stride;
                stride *= shape[axis] as i64;
            }
            if inside { (element as i16).to_be_bytes() } else { fill.to_be_bytes() }
        })
        .collect()
}

fn cut_file(
    path: &Path,
    region: &Region,
    mode: Mode,
    fill: Option<f64>,
) -> Result<Vec<u8>, EngineError> {
    let object = open(path.to_str().unwrap())?;
    let cutout = cut(
        &object,
        &Selector::FirstImage,
        region,
        mode,
        fill,
        Objective::Auto,
        &Cancel::default(),
    )?;
    Ok(cutout.data().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_box_is_the_slice_of_the_whole(
        axes in prop::collection::vec((1u64..40, -20i64..50, 1i64..40), 1..4)
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let region = Region::new(
            axes.iter().map(|axis| axis.1).collect(),
            axes.iter().map(|axis| axis.1 + axis.2).collect(),
        ).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "image.fits", &image(&shape));
        let partial = cut_file(&path, &region, Mode::Partial, Some(-7.0));
        let trim = cut_file(&path, &region, Mode::Trim, None);
        let strict = cut_file(&path, &region, Mode::Strict, None);
        match region.overlap(&shape) {
            Ok(overlap) => {
                prop_assert_eq!(partial.unwrap(), expected(&shape, &region, -7));
                prop_assert_eq!(trim.unwrap(), expected(&shape, &overlap.inside, 0));
                prop_assert_eq!(strict.is_ok(), overlap.complete);
            }
            Err(_) => {
                prop_assert!(partial.is_err_and(|error| error.is_no_overlap()));
                prop_assert!(trim.is_err_and(|error| error.is_no_overlap()));
                prop_assert!(strict.is_err_and(|error| error.is_no_overlap()));
            }
        }
    }
}

/// A wide image: its rows are further apart than a gap that is read through.
#[test]
fn rows_far_apart_are_read_one_by_one() {
    let shape = [20_000, 12];
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "wide.fits", &image(&shape));
    let region = Region::new(vec![7_000, 2], vec![7_010, 11]).unwrap();
    let pixels = cut_file(&path, &region, Mode::Trim, None).unwrap();
    assert_eq!(pixels, expected(&shape, &region, 0));
}

#[test]
fn a_value_that_pixels_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "image.fits", &image(&[8, 8]));
    let region = Region::new(vec![-1, 0], vec![3, 3]).unwrap();
    for fill in [0.5, 40_000.0, f64::NAN, f64::INFINITY] {
        let result = cut_file(&path, &region, Mode::Partial, Some(fill));
        assert!(matches!(result, Err(EngineError::Fill { .. })), "{fill}");
    }
}

#[test]
fn enough_rows_are_gathered_and_what_failed_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "image.fits", &image(&[8, 8]));
    // Every other one is outside.
    let boxes: Vec<_> = (0..100).map(|number| (0, [number % 2 * 50, 0, 4, 4])).collect();
    let job = job(vec![file], &boxes, folder.path().join("out"), OutputKind::Folder);
    let output = Arc::new(Output::open(&job).unwrap());
    let batch = Batch::start(job, output, Cancel::default(), &[]).unwrap();
    let long = Duration::from_secs(60);
    let mut rows = batch.gather(30, long).unwrap();
    assert!(rows.len() >= 30);
    // More rows than are left: the rest comes at the end, and then nothing.
    while let Some(more) = batch.gather(1000, long) {
        assert!(!more.is_empty());
        rows.extend(more);
    }
    assert!(batch.gather(1, Duration::ZERO).is_none());
    batch.finish().unwrap();
    let mut outcomes: Vec<_> = rows.iter().map(|row| (row.target, row.outcome.is_ok())).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, (0..100).map(|number| (number, number % 2 == 0)).collect::<Vec<_>>());
}

fn run(job: Job) -> Vec<Row> {
    let count = job.targets.len();
    let output = Arc::new(Output::open(&job).unwrap());
    let manifest = tempfile::NamedTempFile::new().unwrap();
    let batch = Batch::start(job, output.clone(), Cancel::default(), &[]).unwrap();
    let mut rows = Vec::new();
    while let Some(more) = batch.poll(Duration::from_millis(50)) {
        rows.extend(more);
    }
    batch.finish().unwrap();
    output.close(Some(manifest.path())).unwrap();
    rows.sort_by_key(|row| row.target);
    assert_eq!(rows.iter().map(|row| row.target).collect::<Vec<_>>(), Vec::from_iter(0..count));
    rows
}

fn job(files: Vec<PathBuf>, boxes: &[(usize, [i64; 4])], output: PathBuf, kind: OutputKind) -> Job {
    let target = |(number, &(file, pixels)): (usize, &(usize, [i64; 4]))| Target {
        file,
        hdu: 0,
        planes: 0,
        pixels,
        id: None,
        name: format!("cut-{number}.fits"),
    };
    Job {
        files: files.iter().map(|file| file.display().to_string()).collect(),
        replicas: None,
        selectors: vec![Selector::FirstImage],
        targets: boxes.iter().enumerate().map(target).collect(),
        output,
        kind,
        append: None,
        overwrite: false,
        mode: Mode::Trim,
        fill: None,
        most_bytes: None,
        planes: vec![Vec::new()],
        objective: Objective::Auto,
        threads: 2,
        stores: swathe_store::stores(Vec::new()),
        open_sources: swathe_engine::OpenSources::default(),
    }
}

#[test]
fn each_target_of_a_batch_ends_once_and_no_fault_stops_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut short = image(&[50, 40]);
    short.truncate(2880 + 50 * 2 * 20);
    let files = vec![
        write(folder.path(), "good.fits", &image(&[50, 40])),
        write(folder.path(), "short.fits", &short),
        write(folder.path(), "text.fits", b"not FITS at all"),
        folder.path().join("absent.fits"),
    ];
    let boxes = [
        (0, [5, 5, 10, 10]),
        (1, [0, 0, 50, 10]),
        (1, [0, 30, 50, 10]),
        (2, [0, 0, 5, 5]),
        (3, [0, 0, 5, 5]),
        (0, [500, 5, 10, 10]),
        (0, [45, 35, 10, 10]),
        (0, [i64::MAX, 0, 5, 5]),
    ];
    let output = folder.path().join("out");
    let rows = run(job(files, &boxes, output.clone(), OutputKind::Folder));
    let outcomes: Vec<&str> = rows
        .iter()
        .map(|row| match &row.outcome {
            Ok(_) => "ok",
            Err(error) if error.is_missing() => "missing",
            Err(error) if error.is_no_overlap() => "no-overlap",
            Err(_) => "error",
        })
        .collect();
    assert_eq!(outcomes, ["ok", "ok", "error", "error", "missing", "no-overlap", "ok", "error"]);
    for (row, &(_, [x, y, width, height])) in rows.iter().zip(&boxes) {
        let path = output.join(format!("cut-{}.fits", row.target));
        let Ok(file) = &row.outcome else {
            assert!(!path.exists());
            continue;
        };
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, file.bytes);
        let region =
            Region::new(vec![x, y], vec![(x + width).min(50), (y + height).min(40)]).unwrap();
        let pixels = expected(&[50, 40], &region, 0);
        assert_eq!(&bytes[2880..2880 + pixels.len()], pixels);
    }
}

#[test]
fn archives_are_extended_where_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "image.fits", &image(&[50, 40]));
    for kind in [OutputKind::Zip, OutputKind::Tar, OutputKind::Fits] {
        let output = folder.path().join(format!("{kind:?}.out"));
        let first = job(vec![file.clone()], &[(0, [0, 0, 5, 5])], output.clone(), kind);
        assert!(run(first)[0].outcome.is_ok());
        let end_before = std::fs::metadata(&output).unwrap().len();
        let end = match kind {
            OutputKind::Zip => members(&File::open(&output).unwrap()).unwrap()[0].end,
            // An empty manifest is a block, and two end the archive.
            OutputKind::Tar => end_before - 3 * 512,
            _ => end_before,
        };
        let mut second = job(vec![file.clone()], &[(0, [5, 5, 5, 5])], output.clone(), kind);
        second.targets[0].name = "second.fits".into();
        second.append = Some(end);
        assert!(run(second)[0].outcome.is_ok());
        let bytes = std::fs::read(&output).unwrap();
        assert!(bytes.len() as u64 > end_before);
        match kind {
            OutputKind::Tar => {
                let mut archive = tar::Archive::new(&bytes[..]);
                let names: Vec<_> = archive
                    .entries()
                    .unwrap()
                    .map(|entry| entry.unwrap().path().unwrap().display().to_string())
                    .collect();
                assert_eq!(names, ["cut-0.fits", "second.fits", "manifest.ecsv"]);
            }
            OutputKind::Zip => {
                let archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
                let mut names: Vec<_> = archive.file_names().collect();
                names.sort_unstable();
                assert_eq!(names, ["cut-0.fits", "manifest.ecsv", "second.fits"]);
            }
            _ => {
                let object = open(output.to_str().unwrap()).unwrap();
                let hdus = object.hdus().unwrap();
                let names: Vec<_> = hdus.iter().filter_map(|hdu| hdu.name()).collect();
                assert_eq!(names, ["cut-0.fits", "second.fits"]);
            }
        }
    }
}

#[test]
fn a_name_that_leaves_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "image.fits", &image(&[50, 40]));
    let mut job =
        job(vec![file], &[(0, [0, 0, 5, 5])], folder.path().join("out"), OutputKind::Folder);
    job.targets[0].name = "../escaped.fits".into();
    assert!(matches!(run(job)[0].outcome, Err(EngineError::Output { .. })));
    assert!(!folder.path().join("escaped.fits").exists());
}

#[test]
fn impossible_sizes_are_errors_before_memory_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for (naxis1, naxis2) in
        [("1000000000000", "1000000"), ("1000000000000", "1000000000000"), ("-5", "7")]
    {
        let mut header = image(&[8, 8]);
        header[3 * 80 + 10..3 * 80 + 30].copy_from_slice(format!("{naxis1:>20}").as_bytes());
        header[4 * 80 + 10..4 * 80 + 30].copy_from_slice(format!("{naxis2:>20}").as_bytes());
        let path = write(folder.path(), "huge.fits", &header);
        let region = Region::new(vec![0, 0], vec![500_000_000_000, 500_000]).unwrap();
        assert!(cut_file(&path, &region, Mode::Trim, None).is_err());
    }
}
