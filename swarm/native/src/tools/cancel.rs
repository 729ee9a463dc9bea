//! Breaking off what is under way.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells all holders of a clone that the work is not wanted any more.
#[derive(Debug, Clone)]
pub struct Cancel {
    state: Arc<watch::Sender<bool>>,
    parent: Option<Arc<Self>>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self {
            state: Arc::new(watch::Sender::new(false)),
            parent: None,
        }
    }
}

impl Cancel {
    /// A clone that is cancelled with this one, and can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            parent: Some(Arc::new(self.clone())),
            ..Self::default()
        }
    }

    /// Breaks it off; for good.
    pub fn cancel(&self) {
        self.state.send_replace(true);
    }

    /// True if it was broken off.
    pub fn is_cancelled(&self) -> bool {
        *self.state.borrow() || self.parent.as_ref().is_some_and(|it| it.is_cancelled())
    }

    /// Waits until it is broken off.
    pub async fn cancelled(&self) {
        let mut state = self.state.subscribe();
        // The sender lives as long as this value, so there is no end without a cancellation.
        let own = state.wait_for(|cancelled| *cancelled);
        match &self.parent {
            None => drop(own.await),
            Some(parent) => {
                tokio::select! {
                    _ = own => {}
                    () = Box::pin(parent.cancelled()) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_ends_with_its_parent_and_not_the_other_way() {
        let parent = Cancel::default();
        let (first, second) = (parent.child(), parent.child());
        first.cancel();
        first.cancelled().await;
        assert!(first.is_cancelled() && !parent.is_cancelled() && !second.is_cancelled());
        parent.cancel();
        second.cancelled().await;
        assert!(second.is_cancelled());
    }
}
