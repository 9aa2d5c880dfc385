//! The bytes as a file: its headers, HDUs, images and tables of tiles, and headers of cuts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use swathe_array::Region;
use swathe_fits::{
    CutHeader, Hdu, Header, HeaderParse, Image, Provenance, as_extension, companions,
    primary_for_extension, shifted_companion,
};
use swathe_layout::{ChunkTable, Storage};

/// Rows of a table of tiles that are read.
const ROWS: u64 = 8;

fuzz_target!(|bytes: &[u8]| {
    let mut start = 0;
    let mut first = None;
    for index in 0.. {
        let Some(rest) = usize::try_from(start).ok().and_then(|start| bytes.get(start..)) else {
            break;
        };
        let Ok(HeaderParse::Complete { header, bytes: length }) = Header::parse(rest) else {
            break;
        };
        look_up(&header);
        let Ok(hdu) = Hdu::new(index, start, length as u64, header) else { break };
        assert!(hdu.data_start >= start + 2880 && hdu.end() >= hdu.data_start + hdu.data_len);
        if let Ok(image) = hdu.image() {
            self::image(&image, first.as_ref().unwrap_or(&hdu.header));
            if let Storage::Chunked(table) = &image.layout.storage {
                tiles(&**table, bytes);
            }
        }
        start = hdu.end();
        first.get_or_insert(hdu.header);
    }
});

/// Every card, by itself and by its keyword.
fn look_up(header: &Header) {
    assert_eq!(header.to_bytes().len() % 2880, 0);
    for card in header.cards().iter().take(64) {
        let _ = (card.value(), card.comment(), card.with_number("1"));
        let keyword = String::from_utf8_lossy(card.keyword()).into_owned();
        let _ = (header.get_int(&keyword), header.get_float(&keyword));
        let _ = (header.get_bool(&keyword), header.get_str(&keyword));
    }
}

/// Headers of cuts of the near and the far corner, and of what goes with them.
fn image(image: &Image, primary: &Header) {
    let Ok(cut) = CutHeader::new(image) else { return };
    if image.layout.shape.contains(&0) {
        return;
    }
    let corner = |far: bool| {
        let stop = image.layout.shape.iter().map(|&side| if far { side as i64 } else { 1 });
        let stop: Vec<i64> = stop.collect();
        Region { start: stop.iter().map(|stop| stop - 1).collect(), stop }
    };
    let provenance =
        Provenance { source: "/a/file.fits", source_version: "1 x", fill: Some("NaN") };
    for region in [corner(false), corner(true)] {
        let mut plain = Vec::new();
        cut.render(&region, &provenance, None, &mut plain).expect("the axes are the image's");
        let mut with_checksum = Vec::new();
        cut.render(&region, &provenance, Some(&[1; 8]), &mut with_checksum).expect("as above");
        assert_eq!(plain.len(), with_checksum.len());
        let _ = as_extension(&plain, "NAME", &[1; 8]);
        let _ = shifted_companion(&image.header, &region);
    }
    let _ = (companions(image), primary_for_extension(primary, 2));
}

/// Tiles at both ends of the image, and the rows of the table the bytes hold.
fn tiles(table: &dyn ChunkTable, bytes: &[u8]) {
    let grid = table.grid();
    let (whole, count) = (Region::of_shape(&grid.shape), grid.count().expect("a row for each"));
    for number in [0, count / 2, count - 1] {
        let tile = grid.chunk(number);
        assert_eq!(tile.intersection(&whole).as_ref(), Some(&tile));
        assert_eq!(grid.chunks_for(&tile), [number]);
    }
    for number in 0..count.min(ROWS) {
        let range = table.entry_range(number);
        let Some(row) = bytes.get(range.start as usize..range.end as usize) else { break };
        if let Ok(entry) = table.entry(row) {
            assert!(entry.offset.checked_add(entry.len).is_some());
        }
    }
}
