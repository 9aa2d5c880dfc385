use super::*;
use crate::cutout::Mode;
use crate::selector::Selector;
use crate::testing::{path_in, stores, write_pixel};
use crate::worker_context::Cancel;

#[test]
fn what_memory_cannot_hold_is_told_in_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path_in(&folder, "a.fits");
    write_pixel(&file);
    let object = Object::open(&file, &stores(), false, Cancel::default()).expect("opened");
    let template = object.template(&Selector::FirstImage).expect("an image");
    let whole = Region::of_shape(&[1, 1]);
    let mut region = PlacedRegion::new(&template, &whole, Mode::Trim, None, None).expect("placed");
    region.bytes = 1 << 60;
    let mut job = PendingRegion { id: 0, region, state: State::Waiting };
    let error = job
        .partial(&template, &mut SpareBuffers::default())
        .map(|_| ())
        .expect_err("more than there is");
    assert!(matches!(error, EngineError::Memory { .. }), "{error:?}");
    let bytes = (1_u64 << 60) + 16 * crate::template::BLOCK as u64;
    let expected = format!("{file}, HDU 0: no memory for cutout {whole}: {bytes} bytes wanted");
    assert_eq!(error.to_string(), expected);
}
