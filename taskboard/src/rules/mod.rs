//! The rules of a board: functions of what they are given, the same for every backend.

pub(crate) mod batch;
pub(crate) mod claim;
pub(crate) mod complete;
pub(crate) mod cycles;
pub(crate) mod edit;
pub(crate) mod index;
pub(crate) mod needs;
pub(crate) mod next;
pub(crate) mod ready;
pub(crate) mod update;
