//! The module's exports. The page writes a request behind [`explorer_request`]'s address, calls
//! [`explorer_call`], and reads the answer.
//!
//! No memory is handed over: the page copies, and each buffer is used until the next call.

// SAFETY: no other symbols of the names of these exports are linked; plain numbers go in and out.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::answer::{Answer, answer};
use crate::session::Session;

#[derive(Default)]
struct State {
    request: Vec<u8>,
    answer: Answer,
    session: Option<Session>,
}

fn state() -> &'static LocalKey<RefCell<State>> {
    thread_local!(static STATE: RefCell<State> = RefCell::default());
    &STATE
}

/// Returns what a panic said, which ends the module.
fn panicked() -> &'static LocalKey<RefCell<String>> {
    thread_local!(static PANIC: RefCell<String> = const { RefCell::new(String::new()) });
    &PANIC
}

/// Makes room for a request of so many bytes, and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn explorer_request(bytes: u32) -> *const u8 {
    state().with_borrow_mut(|state| {
        state.request.clear();
        state.request.resize(bytes as usize, 0);
        state.request.as_ptr()
    })
}

/// Answers the request that has been written.
#[unsafe(no_mangle)]
pub extern "C" fn explorer_call() {
    std::panic::set_hook(Box::new(|panic| panicked().set(panic.to_string())));
    state().with_borrow_mut(|state| {
        let request = String::from_utf8_lossy(&state.request);
        state.answer = answer(&mut state.session, &request);
    });
}

/// Returns the address of the answer's text, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn explorer_text() -> *const u8 {
    state().with_borrow(|state| state.answer.json.as_ptr())
}

/// Returns the length of the answer's text in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn explorer_text_bytes() -> u32 {
    state().with_borrow(|state| state.answer.json.len() as u32)
}

/// Returns the address of the answer's numbers.
#[unsafe(no_mangle)]
pub extern "C" fn explorer_numbers() -> *const f64 {
    state().with_borrow(|state| state.answer.numbers.as_ptr())
}

/// Returns how many numbers the answer has.
#[unsafe(no_mangle)]
pub extern "C" fn explorer_numbers_length() -> u32 {
    state().with_borrow(|state| state.answer.numbers.len() as u32)
}

/// Returns the address of what a panic said, after a call that ended in a trap.
#[unsafe(no_mangle)]
pub extern "C" fn explorer_panic_text() -> *const u8 {
    panicked().with_borrow(|text| text.as_ptr())
}

/// Returns the length of what a panic said, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn explorer_panic_bytes() -> u32 {
    panicked().with_borrow(String::len) as u32
}
