use super::*;
use proptest::prelude::*;

const SIZE: u64 = 1000;
const TYPE: &str = "multipart/byteranges; boundary=XX";

fn byte(at: u64) -> u8 {
    // Line ends and dashes, as if boundaries were in the data.
    [b'\r', b'\n', b'-', b'-', b'X', b'X'][(at % 6) as usize]
}

fn part(range: &Range<u64>) -> Vec<u8> {
    let head = format!(
        "\r\n--XX\r\nContent-Type: a/b\r\nContent-range: bytes {}-{}/{SIZE}\r\n\r\n",
        range.start,
        range.end - 1
    );
    head.into_bytes().into_iter().chain(range.clone().map(byte)).collect()
}

fn body(ranges: &[Range<u64>]) -> Vec<u8> {
    let parts = ranges.iter().flat_map(part);
    parts.chain(*b"\r\n--XX--\r\n").collect()
}

/// The pieces of a whole answer that comes in chunks of `step` bytes.
fn read(
    ranges: &[Range<u64>],
    body: &[u8],
    step: usize,
) -> Result<(Multipart, Vec<Vec<u8>>), MultipartError> {
    let mut multipart = Multipart::new(TYPE, ranges.to_vec(), SIZE)?;
    let mut pieces = vec![Vec::new(); ranges.len()];
    for chunk in body.chunks(step) {
        multipart.feed(chunk, &mut |number, data| pieces[number].extend_from_slice(data))?;
    }
    Ok((multipart, pieces))
}

fn bytes_of(ranges: &[Range<u64>]) -> Vec<Vec<u8>> {
    ranges.iter().map(|range| range.clone().map(byte).collect()).collect()
}

const RANGES: [Range<u64>; 3] = [10..30, 40..41, 900..1000];

#[test]
fn parts_in_any_order_merged_or_not_are_read() {
    let answers: [&[Range<u64>]; 4] =
        [&RANGES, &[900..1000, 10..30, 40..41], &[10..41, 900..1000], &[10..1000]];
    for (number, parts) in answers.into_iter().enumerate() {
        let (multipart, pieces) = read(&RANGES, &body(parts), 7).expect("well formed");
        assert_eq!(pieces, bytes_of(&RANGES));
        assert!(multipart.is_complete() && multipart.is_ended());
        assert_eq!(
            (multipart.parts() as usize, multipart.is_ordered()),
            (parts.len(), number != 1)
        );
    }
}

#[test]
fn one_range_in_place_of_many_is_taken_if_it_was_requested() {
    let single = |text: &str| Multipart::single(text, RANGES.to_vec(), SIZE);
    for (text, is_complete, length) in
        [("bytes 10-999/1000", true, 990), ("bytes 40-40/*", false, 1)]
    {
        let mut multipart = single(text).expect("requested");
        multipart.feed(&vec![0; length], &mut |_, _| {}).expect("that many");
        assert_eq!((multipart.is_complete(), multipart.is_ended()), (is_complete, true));
        assert!(multipart.feed(b"x", &mut |_, _| {}).is_err(), "too long");
    }
    for text in ["bytes 0-999/1000", "bytes 10-29/1001", "bytes 11-29/1000", "bytes 30-10/1000", ""]
    {
        assert!(single(text).is_err(), "{text}");
    }
}

#[test]
fn ranges_that_are_joined_are_told_apart_by_their_lengths() {
    let all: Vec<u8> = RANGES.iter().flat_map(|range| range.clone().map(byte)).collect();
    for step in [1, 7, 4096] {
        let mut sequence = Multipart::sequence("1000", RANGES.to_vec(), SIZE).expect("that object");
        let mut pieces = vec![Vec::new(); RANGES.len()];
        for (number, chunk) in all.chunks(step).enumerate() {
            assert!(!sequence.is_complete(), "before piece {number}");
            sequence
                .feed(chunk, &mut |number, data| pieces[number].extend_from_slice(data))
                .expect("that many");
        }
        assert_eq!(pieces, bytes_of(&RANGES));
        assert!(sequence.is_complete() && sequence.is_ended() && sequence.is_ordered());
        assert!(sequence.feed(b"x", &mut |_, _| {}).is_err(), "too long");
    }
    for size in ["1001", "", "yes"] {
        assert!(Multipart::sequence(size, RANGES.to_vec(), SIZE).is_err(), "{size}");
    }
}

#[test]
fn what_was_not_requested_is_refused() {
    let answers: [&[Range<u64>]; 5] =
        [&[0..30], &[10..31], &[10..30, 10..30], &[10..41, 40..41], &[40..42]];
    for parts in answers {
        let error = read(&RANGES, &body(parts), 11).expect_err("not requested");
        assert!(error.to_string().contains("once, found \"bytes "), "{error}");
    }
}

#[test]
fn damaged_answers_are_refused_or_incomplete() {
    let good = String::from_utf8(body(&RANGES)).expect("text");
    let many = "X: y\r\n".repeat(17);
    let long = format!("X: {}\r\n", "y".repeat(1100));
    let changes = [
        ("--XX", "--XY"),
        ("/1000", "/1001"),
        ("bytes 40-40", "bytes 40-41"),
        ("bytes 10-29", "bytes 10-28"),
        ("bytes 900-999", "bytes 900-18446744073709551615"),
        ("Content-range: bytes 10-29/1000\r\n", ""),
        ("Content-range: bytes 40", "Content-Range: bytes 40-40/1000\r\nContent-Range: bytes 40"),
        ("Content-Type: a/b\r\n", "no header\r\n"),
        ("Content-Type: a/b\r\n", &many),
        ("Content-Type: a/b\r\n", &long),
        ("\r\n--XX", "\r\n\r\n\r\n\r\n--XX"),
        ("\r\n--XX\r\n", "preamble\r\n--XX\r\n"),
    ];
    for (from, to) in changes {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        assert!(read(&RANGES, bad.as_bytes(), 13).is_err(), "{from} to {to}");
    }
    let end = "\r\n--XX--\r\n".len();
    let cut = |left_out: usize| {
        let (multipart, _) =
            read(&RANGES, &good.as_bytes()[..good.len() - left_out], 17).expect("so far");
        (multipart.is_complete(), multipart.is_ended())
    };
    assert_eq!([cut(0), cut(2)], [(true, true); 2]);
    assert_eq!([cut(3), cut(end)], [(true, false); 2], "without the last boundary");
    assert_eq!([cut(end + 1), cut(good.len())], [(false, false); 2]);
    let after = format!("{good}{}", "z".repeat(2000));
    assert!(read(&RANGES, after.as_bytes(), 4096).is_err());
}

#[test]
fn only_multipart_types_with_a_boundary_are_read() {
    let of = |kind: &str| Multipart::new(kind, RANGES.to_vec(), SIZE).map(drop);
    for kind in
        [TYPE, "Multipart/Byteranges;Boundary=\"a b\"", "multipart/byteranges; x=y; boundary=z"]
    {
        assert_eq!(of(kind), Ok(()), "{kind}");
    }
    let long = format!("{TYPE}{}", "X".repeat(300));
    for kind in
        ["text/html; boundary=XX", "multipart/byteranges", "multipart/byteranges; boundary=", &long]
    {
        assert!(of(kind).is_err(), "{kind}");
    }
}

proptest! {
    #[test]
    fn no_answer_panics_and_pieces_are_never_longer_than_requested(
        cuts in prop::collection::vec((0usize..400, any::<u8>()), 0..4), step in 1usize..64,
    ) {
        let mut bytes = body(&RANGES);
        for (at, value) in cuts {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Ok((multipart, pieces)) = read(&RANGES, &bytes, step) {
            for (piece, range) in pieces.iter().zip(&RANGES) {
                prop_assert!(piece.len() as u64 <= range.end - range.start);
                prop_assert!(!multipart.is_complete() || piece.len() as u64 == range.end - range.start);
            }
        }
    }
}
