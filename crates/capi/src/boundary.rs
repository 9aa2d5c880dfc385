//! The boundary to C: arguments in, results and errors out. No panic crosses it.

use crate::fault::Fault;
use libc::{c_char, c_int};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// The result of `work`, or -1 with `errno` and the text of [`sw_error`].
pub(crate) fn guard<T: From<i8>>(work: impl FnOnce() -> Result<T, Fault>) -> T {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(result)) => result,
        Ok(Err(fault)) => fail(fault),
        Err(panic) => fail(fault_of_panic(&*panic)),
    }
}

#[cold]
fn fail<T: From<i8>>(Fault { errno, text }: Fault) -> T {
    // A text of C ends at its first zero.
    let text: Vec<u8> = text.into_bytes().into_iter().filter(|&byte| byte != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    // At the very end of a thread nobody asks for the text any more.
    let _ = LAST_ERROR.try_with(|last| last.replace(text));
    // SAFETY: the location is that of this thread.
    unsafe { *libc::__errno_location() = errno };
    T::from(-1)
}

fn fault_of_panic(panic: &(dyn Any + Send)) -> Fault {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Fault::new(libc::EIO, format!("internal error in libswathe: {text}"))
}

/// A text of the caller.
///
/// # Safety
/// `text` is NULL, or ends with a zero and stays as it is during the call.
pub(crate) unsafe fn text_of<'a>(name: &str, text: *const c_char) -> Result<&'a str, Fault> {
    // SAFETY: the caller's promise.
    let text = unsafe { optional_text(name, text)? };
    text.ok_or_else(|| Fault::new(libc::EFAULT, format!("{name}: expected a text, found NULL")))
}

/// A text of the caller, who may leave it out.
///
/// # Safety
/// As [`text_of`].
pub(crate) unsafe fn optional_text<'a>(
    name: &str,
    text: *const c_char,
) -> Result<Option<&'a str>, Fault> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| {
        let found = text.to_string_lossy();
        Fault::invalid(format!("{name}: expected UTF-8, found {found:?}"))
    })?;
    Ok(Some(text))
}

/// Memory of the caller to write to.
///
/// # Safety
/// There are `length` bytes, which only this call uses, as `'a` may outlive it in no way.
pub(crate) unsafe fn bytes_of<'a>(
    buffer: *mut libc::c_void,
    length: usize,
) -> Result<&'a mut [u8], Fault> {
    check_buffer(buffer, length)?;
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the caller's promise; the length was checked.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) })
}

/// Refuse memory that cannot be: no address, or more bytes than a result can count.
pub(crate) fn check_buffer(buffer: *const libc::c_void, length: usize) -> Result<(), Fault> {
    if length > isize::MAX as usize {
        let text = format!("length: expected at most {}, found {length}", isize::MAX);
        return Err(Fault::invalid(text));
    }
    if buffer.is_null() && length > 0 {
        let text = format!("buffer: expected memory for {length} bytes, found NULL");
        return Err(Fault::new(libc::EFAULT, text));
    }
    Ok(())
}

/// An offset of the caller.
pub(crate) fn offset_of(offset: i64) -> Result<u64, Fault> {
    u64::try_from(offset)
        .map_err(|_| Fault::invalid(format!("offset: expected 0 or more, found {offset}")))
}

/// Return the text of the last error of this thread, empty if there was none. It is valid until
/// another call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn sw_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Return the version of the library, as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn sw_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// A result of success.
pub(crate) const SUCCESS: c_int = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn last_error() -> String {
        // SAFETY: the text ends with a zero.
        unsafe { CStr::from_ptr(sw_error()) }.to_str().expect("text").to_string()
    }

    fn errno() -> c_int {
        std::io::Error::last_os_error().raw_os_error().expect("a number")
    }

    #[test]
    fn a_panic_is_an_error_with_its_text() {
        let result: c_int = guard(|| panic!("a wheel came off"));
        assert_eq!((result, errno()), (-1, libc::EIO));
        assert_eq!(last_error(), "internal error in libswathe: a wheel came off");
    }

    #[test]
    fn each_thread_has_its_own_error() {
        let fault = || Err(Fault::new(libc::ENOENT, "here\0after"));
        assert_eq!(guard::<isize>(fault), -1);
        let other = std::thread::spawn(last_error).join().expect("joined");
        assert_eq!(other, "");
        assert_eq!((errno(), last_error().as_str()), (libc::ENOENT, "hereafter"));
        assert_eq!(guard(|| Ok(SUCCESS)), 0);
        assert_eq!(last_error(), "hereafter", "success leaves it");
    }

    #[test]
    fn arguments_that_cannot_be_are_refused() {
        let null: *mut libc::c_void = std::ptr::null_mut();
        // SAFETY: nothing is read through these.
        unsafe {
            assert_eq!(text_of("url", null.cast()).unwrap_err().errno, libc::EFAULT);
            assert_eq!(text_of("url", c"a\xff".as_ptr()).unwrap_err().errno, libc::EINVAL);
            assert_eq!(bytes_of(null, 1).unwrap_err().errno, libc::EFAULT);
            assert_eq!(bytes_of(null, usize::MAX).unwrap_err().errno, libc::EINVAL);
            assert_eq!(bytes_of(null, 0).expect("none").len(), 0);
        }
        assert_eq!(offset_of(-1).unwrap_err().errno, libc::EINVAL);
    }
}
