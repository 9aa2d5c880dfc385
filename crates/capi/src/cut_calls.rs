//! The calls that cut.

use crate::boundary::{SUCCESS, bytes_of, guard, optional_text, text_of};
use crate::fault::Fault;
use crate::handles;
use crate::image_cut::{CutoutShape, ImageBox, too_small};
use libc::{c_char, c_int, c_void, size_t, ssize_t};
use swathe_engine::Mode;

/// Mode of a cut: only the part of the box that lies in the image.
pub const SW_TRIM: c_int = 0;
/// Mode of a cut: pixels outside the image are filled with NaN, BLANK or 0.
pub const SW_PARTIAL: c_int = 1;
/// Mode of a cut: a box that lies partly outside the image is an error (EDOM).
pub const SW_STRICT: c_int = 2;
/// Added to the mode: an output that exists is replaced.
pub const SW_REPLACE: c_int = 16;

/// Most axes of an image that is cut into memory.
const AXES: usize = 8;

/// The pixels of a cutout.
#[allow(non_camel_case_types)] // as C has it
#[repr(C)]
pub struct sw_image {
    /// Type of the pixels, as in FITS: 8, 16, 32 and 64 are integers, -32 and -64 floats.
    pub bitpix: c_int,
    /// Number of axes, at most 8.
    pub axes: c_int,
    /// First pixel of each axis in the image, from 0; NAXIS1 first.
    pub start: [i64; 8],
    /// Pixels of each axis; NAXIS1 first, which changes fastest in memory.
    pub shape: [i64; 8],
    /// Bytes of all pixels.
    pub bytes: i64,
    /// Physical values are bzero + bscale * pixel.
    pub bzero: f64,
    /// See bzero.
    pub bscale: f64,
}

/// Cut a box out of an image to a FITS file of its own, with header and WCS: a path, or an object of
/// a store. handle: of an object that is open to read; the headers are read at its first cut.
///
/// hdu: a number from 0, "NAME" or "NAME,VERSION"; NULL for the first HDU with an image.
/// pixels: first pixel on NAXIS1 and NAXIS2, from 0, width, height. Further axes are cut whole.
/// flags: SW_TRIM, SW_PARTIAL or SW_STRICT, and perhaps SW_REPLACE.
///
/// Returns 0. Errors: EBADF, EINVAL, EFAULT; ENXIO (no such HDU), EBADMSG (no image, or damaged),
/// EDOM (the box is outside), EFBIG, EEXIST, ESTALE, and those of sw_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_cut(
    handle: c_int,
    hdu: *const c_char,
    pixels: *const i64,
    flags: c_int,
    output: *const c_char,
) -> c_int {
    guard(|| {
        let reader = handles::reader(handle)?;
        // SAFETY: texts and numbers of the caller.
        let (image_box, output) =
            unsafe { (box_of(hdu, pixels, flags & !SW_REPLACE)?, text_of("output", output)?) };
        image_box.write(&reader, output, flags & SW_REPLACE != 0)?;
        Ok(SUCCESS)
    })
}

/// Cut a box out of an image into memory: pixels as they are stored, before BSCALE and BZERO, in the
/// byte order of this machine. Arguments as of sw_cut, without SW_REPLACE.
///
/// image: filled in, also if the memory is too small; may be NULL.
/// buffer: memory for the pixels; NULL with a length of 0 fills in the image only.
///
/// Returns the bytes of the pixels. Errors: as sw_cut; ERANGE if they are more than length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_cut_pixels(
    handle: c_int,
    hdu: *const c_char,
    pixels: *const i64,
    flags: c_int,
    image: *mut sw_image,
    buffer: *mut c_void,
    length: size_t,
) -> ssize_t {
    guard(|| {
        let reader = handles::reader(handle)?;
        // SAFETY: texts, numbers and memory of the caller.
        let (image_box, memory) =
            unsafe { (box_of(hdu, pixels, flags)?, bytes_of(buffer, length)?) };
        let mut shape = image_box.shape(&reader)?;
        let pixels_of_cutout = image_of(&shape)?;
        if !image.is_null() {
            // SAFETY: memory of the caller.
            unsafe { image.write(pixels_of_cutout) };
        }
        if buffer.is_null() {
            return Ok(shape.bytes as ssize_t);
        }
        if shape.bytes > length {
            return Err(too_small(&shape));
        }
        shape = image_box.fill(&reader, memory)?;
        Ok(shape.bytes as ssize_t)
    })
}

/// # Safety
/// `hdu` is NULL or a text, `pixels` NULL or four numbers.
unsafe fn box_of<'a>(
    hdu: *const c_char,
    pixels: *const i64,
    flags: c_int,
) -> Result<ImageBox<'a>, Fault> {
    // SAFETY: the caller's promise.
    let hdu = unsafe { optional_text("hdu", hdu)? };
    if pixels.is_null() {
        return Err(Fault::new(libc::EFAULT, "pixels: expected four numbers, found NULL"));
    }
    // SAFETY: the caller's promise.
    let pixels = unsafe { pixels.cast::<[i64; 4]>().read_unaligned() };
    let mode = match flags {
        SW_TRIM => Mode::Trim,
        SW_PARTIAL => Mode::Partial,
        SW_STRICT => Mode::Strict,
        _ => {
            let expected = "SW_TRIM, SW_PARTIAL or SW_STRICT";
            return Err(Fault::invalid(format!("flags: expected {expected}, found {flags:#x}")));
        }
    };
    Ok(ImageBox { hdu, pixels, mode })
}

fn image_of(shape: &CutoutShape) -> Result<sw_image, Fault> {
    let (mut start, mut sides) = ([0; AXES], [0; AXES]);
    let axes = shape.region.axes();
    if axes > AXES {
        let text = format!("pixels: expected an image of at most {AXES} axes, found {axes}");
        return Err(Fault::invalid(text));
    }
    start[..axes].copy_from_slice(&shape.region.start);
    for (side, pixels) in sides.iter_mut().zip(shape.region.shape()) {
        *side = pixels as i64;
    }
    Ok(sw_image {
        bitpix: shape.bitpix as c_int,
        axes: axes as c_int,
        start,
        shape: sides,
        bytes: shape.bytes as i64,
        bzero: shape.bzero,
        bscale: shape.bscale,
    })
}
