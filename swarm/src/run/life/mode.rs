//! What an agent may do without asking, changed while it runs.

use tokio::sync::mpsc::Sender;

use super::Life;
use crate::definitions::PermissionMode;
use crate::run::services::ModeOrder;
use crate::runtime::{Messages, Order};

impl Life<'_> {
    /// Tells the agent's program, if that is possible and allowed.
    pub(crate) async fn set_mode(&mut self, order: ModeOrder, orders: &Sender<Order>) {
        let cannot = || {
            let name = &self.meta.runtime.name;
            format!("the runtime {name:?} cannot change its mode while it runs")
        };
        let deaf = self.abilities.messages == Messages::Never || orders.is_closed();
        let why = not_allowed(&order).or_else(|| deaf.then(cannot));
        if let Some(why) = why {
            self.mode_is(&order, Some(&why));
            return;
        }
        let mode = order.mode.clone();
        self.modes.push_back(order);
        orders.send(Order::SetMode { mode }).await.ok();
    }

    /// The program does not run yet: it will start with the mode.
    pub(crate) fn start_in_mode(&mut self, order: &ModeOrder) {
        let why = not_allowed(order);
        self.mode_is(order, why.as_deref());
    }

    /// The program has answered.
    pub(crate) fn mode_answered(&mut self, mode: &str, refused: Option<&str>) {
        let at = self.modes.iter().position(|order| order.mode == mode);
        // One that nobody ordered is the program's own business.
        if let Some(order) = at.and_then(|at| self.modes.remove(at)) {
            self.mode_is(&order, refused);
        }
    }

    fn mode_is(&mut self, order: &ModeOrder, refused: Option<&str>) {
        let mode = &order.mode;
        match refused {
            None => {
                // Whoever resumes it starts it like that.
                self.meta.permission_mode = Some(mode.clone());
                self.write_meta();
            }
            Some(why) => self.record.note(format!("not in mode {mode:?}: {why}")),
        }
        let request = order.request.as_deref();
        if let Err(error) = self.services.mode_set(mode, request, refused) {
            tracing::warn!(%error, "nobody is told of the agent's mode");
        }
        if let (None, Some(why)) = (request, refused) {
            let text = format!("Its plan is approved, but it is still in plan mode: {why}");
            self.services.tell_parent("still in plan mode", &text).ok();
        }
    }
}

/// Why an order is not carried out, whatever the program can do.
fn not_allowed(order: &ModeOrder) -> Option<String> {
    if order.refused.is_some() {
        return order.refused.clone();
    }
    match order.mode.as_str() {
        // No message gives an agent what only its definition can give it.
        mode @ ("bypassPermissions" | "auto") => {
            Some(format!("only an agent's definition can give it {mode:?}"))
        }
        mode if PermissionMode::parse(mode).is_some() => None,
        mode => {
            let modes: Vec<&str> = PermissionMode::ALL
                .iter()
                .map(|mode| mode.as_str())
                .collect();
            let modes = modes.join(", ");
            Some(format!("there is no mode {mode:?}; there are {modes}"))
        }
    }
}
