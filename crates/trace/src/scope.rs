//! Ids that all events of a thread carry.

use crate::ulm::push_short;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Ids that all events of a thread carry, for instance `JOB`. Threads that work for another one
/// adopt its scope.
#[derive(Clone, Debug, Default)]
pub struct Scope(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    ids: Vec<(String, String)>,
    /// As they are written.
    text: Vec<u8>,
}

thread_local! {
    static SCOPE: RefCell<Scope> = const { RefCell::new(Scope(None)) };
    /// Whether it changed since the last call.
    static HAS_CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the scope of this thread changed since the last call.
pub(crate) fn take_change() -> bool {
    HAS_CHANGED.replace(false)
}

impl Scope {
    /// With these ids; their keys must be keys.
    pub fn new(ids: Vec<(String, String)>) -> Scope {
        if ids.is_empty() {
            return Scope(None);
        }
        let mut text = Vec::new();
        for (key, value) in &ids {
            push_short(&mut text, key, value);
        }
        Scope(Some(Arc::new(Inner { ids, text })))
    }

    /// The same ids, and these: for a part of the work.
    pub fn with(&self, ids: &[(&str, &str)]) -> Scope {
        let more = ids.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        let is_new = |(key, _): &&(String, String)| ids.iter().all(|(new, _)| new != key);
        Scope::new(self.ids().iter().filter(is_new).cloned().chain(more).collect())
    }

    /// Run `work` with this scope, in this thread.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        struct Return(Option<Scope>);
        impl Drop for Return {
            fn drop(&mut self) {
                self.0.take().map(Scope::enter);
            }
        }
        let _return = Return(Some(self.enter()));
        work()
    }

    /// The scope of this thread.
    pub fn current() -> Scope {
        SCOPE.try_with(|scope| scope.borrow().clone()).unwrap_or_default()
    }

    /// Make it that of this thread; returns the one before.
    pub fn enter(self) -> Scope {
        let previous = SCOPE.try_with(|scope| scope.replace(self)).unwrap_or_default();
        HAS_CHANGED.set(true);
        previous
    }

    /// Make it that of this thread, which has none of its own but those of the work it does.
    pub fn adopt(&self) {
        let same = |current: &Scope| match (&current.0, &self.0) {
            (None, None) => true,
            (Some(current), Some(own)) => Arc::ptr_eq(current, own),
            _ => false,
        };
        if !SCOPE.try_with(|scope| same(&scope.borrow())).unwrap_or(true) {
            self.clone().enter();
        }
    }

    /// Its ids.
    pub fn ids(&self) -> &[(String, String)] {
        self.0.as_ref().map_or(&[], |inner| &inner.ids)
    }

    pub(crate) fn text(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |inner| &inner.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_work_has_its_ids_until_it_ends() {
        let outer = Scope::new(vec![("JOB".into(), "ab12".into()), ("PART".into(), "1".into())]);
        outer.clone().run(|| {
            let inner = Scope::current().with(&[("PART", "2")]);
            let ids = inner.run(|| Scope::current().ids().to_vec());
            assert_eq!(ids, [("JOB".into(), "ab12".into()), ("PART".into(), "2".into())]);
            assert_eq!(Scope::current().ids(), outer.ids());
        });
        assert!(Scope::current().ids().is_empty());
        assert!(std::panic::catch_unwind(|| outer.run(|| panic!("on purpose"))).is_err());
        assert!(Scope::current().ids().is_empty());
    }
}
