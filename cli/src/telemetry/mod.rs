//! Sessions and plans for a telemetry collector, if ccb was built with the feature `otel`.

#[cfg(feature = "otel")]
pub(crate) use otel::{OfPlan, session};

#[cfg(not(feature = "otel"))]
mod without;
#[cfg(not(feature = "otel"))]
pub(crate) use self::without::{OfPlan, session};
