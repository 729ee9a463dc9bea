//! Actions to run after an answer is written out.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;

use coordinator::agent::service::Receipt;

/// Receipts of answers that are on their way, by the request they answer. If an answer is never
/// written, its receipt is dropped.
#[derive(Clone, Default)]
pub(crate) struct Receipts(Arc<Mutex<HashMap<RequestId, Receipt>>>);

impl Receipts {
    pub(crate) fn put(&self, id: RequestId, receipt: Receipt) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(id, receipt);
    }

    pub(crate) fn take(&self, id: &RequestId) -> Option<Receipt> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(id)
    }
}

impl fmt::Debug for Receipts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipts")
    }
}
