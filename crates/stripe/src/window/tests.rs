use super::*;
use crate::testing::{TestStripe, bytes_of};
use std::sync::atomic::Ordering;

fn proving_object(parity: u32, bytes: &[u8]) -> (TestStripe, Arc<Object>) {
    let stripe = TestStripe::new(3, parity, true);
    let each = stripe.behaviours.iter();
    each.for_each(|server| server.is_proving.store(true, Ordering::Relaxed));
    stripe.put("a", bytes, false).expect("written");
    let object = stripe.store.open_object(&TestStripe::url("a")).expect("open");
    (stripe, Arc::new(object))
}

#[test]
fn a_reader_that_distrusts_a_server_does_not_change_what_others_asked_for() {
    for parity in [0, 1] {
        let bytes = bytes_of(100_000, 7);
        let (_stripe, object) = proving_object(parity, &bytes);
        let mut window = Window::of(object.clone(), vec![1001..1201, 40_001..40_009], 2);
        let needs = window.needs(&HashSet::new()).expect("readable");
        object.parts.iter().for_each(crate::part::Part::distrust);
        window.ask(&needs);
        let answers = window.answers().expect("read");
        assert!(answers == [&bytes[1001..1201], &bytes[40_001..40_009]], "parity {parity}");
        assert!(object.take_notes().is_empty());
    }
}

#[test]
fn long_reads_make_no_sources_that_prove() {
    let bytes = bytes_of(60_000, 7);
    let (stripe, object) = proving_object(1, &bytes);
    let mut window = Window::new(object.clone(), ShardRanges::default());
    window.requests = vec![0..60_000];
    window.targets = ShardRanges::of(object.layout(), &window.requests);
    window.begin();
    assert!(window.answers().expect("read") == [&bytes[..]]);
    let each = stripe.behaviours.iter();
    let count: u64 = each.map(|server| server.proof_sources.load(Ordering::Relaxed)).sum();
    assert_eq!(count, 0);
}
