//! The calls the standard library does not have.

use std::ffi::{c_int, c_void};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

#[repr(C)]
struct Linger {
    on: c_int,
    seconds: c_int,
}

#[cfg(target_os = "linux")]
const SOCKET_AND_LINGER: (c_int, c_int) = (1, 13);
#[cfg(not(target_os = "linux"))]
const SOCKET_AND_LINGER: (c_int, c_int) = (0xffff, 0x80);

unsafe extern "C" {
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: u32) -> c_int;
    #[cfg(target_os = "linux")]
    fn prctl(option: c_int, ...) -> c_int;
}

/// Makes the close of a socket a reset (RST) that drops what was not sent.
pub(crate) fn reset_on_close(socket: &TcpStream) {
    let linger = Linger { on: 1, seconds: 0 };
    let result = set_option(socket, SOCKET_AND_LINGER, &linger);
    assert_eq!(result, 0, "SO_LINGER: {}", std::io::Error::last_os_error());
}

/// Sets an option of a socket, which reads a value of the type given; 0 if it was taken.
fn set_option<T>(socket: &TcpStream, (level, name): (c_int, c_int), value: &T) -> c_int {
    let (value, size) = ((&raw const *value).cast(), size_of::<T>() as u32);
    // SAFETY: the descriptor is open, and the option reads as many bytes as it is given.
    unsafe { setsockopt(socket.as_raw_fd(), level, name, value, size) }
}

/// Acknowledges what has come from a socket now, and not 40 ms later. A server that sends a header
/// and a body apart may wait for that (Nagle): not over Ethernet, where the body is many segments
/// and every second is acknowledged, but here, where it fits into one of 64 KiB.
pub(crate) fn acknowledge(socket: &TcpStream) {
    #[cfg(target_os = "linux")]
    {
        const TCP_AND_QUICKACK: (c_int, c_int) = (6, 12);
        // Where it is not taken, answers come late, which is no fault.
        set_option(socket, TCP_AND_QUICKACK, &(1 as c_int));
    }
}

/// Sleeps of this thread, and of those it starts, end up to 50 µs late by default on Linux; this
/// asks for 1 ns.
pub(crate) fn wake_on_time() {
    #[cfg(target_os = "linux")]
    {
        const PR_SET_TIMERSLACK: c_int = 29;
        // SAFETY: the option takes a number and touches no memory.
        unsafe { prctl(PR_SET_TIMERSLACK, 1 as std::ffi::c_ulong) };
    }
}
