//! Blocks that are implemented outside these crates, such as by a class in Python.
//!
//! The table of such a block names the class under `class`; its other keys are the parameters of the class,
//! which these crates keep as they are. Whoever runs a network gives each table its [`Implementation`]; a
//! driver that has none must refuse the table.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// The place in a table of the function that makes its objects, `D`, each for its place in a run, `P`.
///
/// Clones share it, so that the first table can get the function when others are made of it already. Tables
/// are compared without it.
pub struct Implementation<P, D: ?Sized>(Arc<OnceLock<Box<Make<P, D>>>>);

type Make<P, D> = dyn Fn(&P) -> Box<D> + Send + Sync;

impl<P, D: ?Sized> Implementation<P, D> {
    /// Puts the function here; the first one counts.
    pub fn set(&self, make: impl Fn(&P) -> Box<D> + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(make));
    }

    /// Returns whether the block of this table can run.
    pub fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Makes an object at the start of a run; `None` without an implementation.
    pub fn make(&self, place: &P) -> Option<Box<D>> {
        self.0.get().map(|make| make(place))
    }
}

impl<P, D: ?Sized> Default for Implementation<P, D> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<P, D: ?Sized> Clone for Implementation<P, D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P, D: ?Sized> PartialEq for Implementation<P, D> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<P, D: ?Sized> fmt::Debug for Implementation<P, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Implementation").field(&self.is_set()).finish()
    }
}

/// Stands in for an object of a table without an implementation, which is only looked at and never meets a
/// packet.
#[derive(Clone, Copy, Debug)]
pub struct Unimplemented;

impl Unimplemented {
    /// Ends a run that a driver had to refuse.
    ///
    /// # Panics
    /// Always.
    pub fn refuse(self) -> ! {
        panic!("a driver refuses classes that it cannot run")
    }
}
