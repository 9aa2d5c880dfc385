//! Times the decoding of every tile of compressed images, on one core:
//! `cargo run --release --example codec_speed FILE.fz...`

#[path = "../tests/compressed/mod.rs"]
mod compressed;

use std::time::Instant;

use swathe_fits::codec::Scratch;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let file = std::fs::read(&path)?;
        for hdu in compressed::hdus(&file) {
            let Some(image) = compressed::Image::new(&hdu) else { continue };
            let tiles = image.read(&file, &hdu);
            let (mut scratch, mut out) = (Scratch::default(), Vec::new());
            let mut best = f64::MAX;
            for _ in 0..15 {
                let start = Instant::now();
                for tile in &tiles {
                    let need = tile.input.shape.iter().product::<u64>() as usize;
                    image.codec.decode(&tile.input, need, &mut scratch, &mut out)?;
                }
                best = best.min(start.elapsed().as_secs_f64());
            }
            let pixels: u64 = image.shape.iter().product();
            let rate = pixels as f64 / best / 1e6;
            println!("{rate:8.1} Mpixel/s  {:?}  {path}", image.codec);
        }
    }
    Ok(())
}
