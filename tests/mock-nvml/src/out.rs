//! How a C function of NVML gives its answer: a return code, and values behind pointers.

use std::ffi::{c_char, c_uint};

/// `nvmlReturn_t`, the codes this library uses.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// `NVML_SUCCESS`
    Success = 0,
    /// `NVML_ERROR_UNINITIALIZED`: no `nvmlInit` before the call.
    Uninitialized = 1,
    /// `NVML_ERROR_INVALID_ARGUMENT`: a null pointer, an index or a handle out of range.
    InvalidArgument = 2,
    /// `NVML_ERROR_NOT_SUPPORTED`: what every symbol returns that is not simulated.
    NotSupported = 3,
    /// `NVML_ERROR_NOT_FOUND`: no device has that UUID or bus id.
    NotFound = 6,
    /// `NVML_ERROR_INSUFFICIENT_SIZE`: the caller's buffer is too small for the text and its NUL.
    InsufficientSize = 7,
    /// `NVML_ERROR_TIMEOUT`: no event came.
    Timeout = 10,
    /// `NVML_ERROR_ARGUMENT_VERSION_MISMATCH`: a versioned struct of another version.
    ArgumentVersionMismatch = 25,
    /// `NVML_ERROR_UNKNOWN`: the configuration cannot be read (the reason is on stderr).
    Unknown = 999,
}

/// Turns a `Result` into the code C expects.
pub(crate) fn code(result: Result<(), Return>) -> Return {
    result.err().unwrap_or(Return::Success)
}

/// A caller's pointer to one value. `Option<&mut T>` has the layout of a nullable C pointer.
pub(crate) type Out<'a, T> = Option<&'a mut T>;

/// Writes `value` behind the caller's pointer.
pub(crate) fn put<T>(out: Out<T>, value: T) -> Result<(), Return> {
    *out.ok_or(Return::InvalidArgument)? = value;
    Ok(())
}

/// Writes `text` and its NUL into the caller's buffer of `length` bytes.
pub(crate) fn put_text(buffer: *mut c_char, length: c_uint, text: &str) -> Result<(), Return> {
    if buffer.is_null() {
        return Err(Return::InvalidArgument);
    }
    let length = usize::try_from(length).map_err(|_| Return::InvalidArgument)?;
    // SAFETY: NVML's contract is that the buffer holds `length` bytes; null was refused above.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    fill(buffer, text)
}

/// A fixed text field of a struct, filled up with NUL.
pub(crate) fn text_field<const N: usize>(text: &str) -> Result<[u8; N], Return> {
    let mut field = [0; N];
    fill(&mut field, text)?;
    Ok(field)
}

fn fill(buffer: &mut [u8], text: &str) -> Result<(), Return> {
    if buffer.len() <= text.len() {
        return Err(Return::InsufficientSize);
    }
    buffer[..text.len()].copy_from_slice(text.as_bytes());
    buffer[text.len()] = 0;
    Ok(())
}
