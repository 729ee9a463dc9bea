//! The permission mode of an agent, changed while it runs.

use tokio::sync::mpsc::Sender;

use super::Life;
use crate::definitions::PermissionMode;
use crate::run::meta::Meta;
use crate::run::services::ModeOrder;
use crate::runtime::{Messages, Order};

impl Life<'_> {
    /// Tells the agent's program, if that is possible and allowed.
    pub(crate) async fn set_mode(&mut self, order: ModeOrder, orders: &Sender<Order>) {
        let (order, mode) = self.named(order);
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
        self.modes.push_back(order);
        orders.send(Order::SetMode { mode }).await.ok();
    }

    /// The program does not run yet: it will start with the mode.
    pub(crate) fn start_in_mode(&mut self, order: ModeOrder) {
        let (order, _) = self.named(order);
        let why = not_allowed(&order);
        self.mode_is(&order, why.as_deref());
    }

    /// The order with the mode it stands for.
    fn named(&self, order: ModeOrder) -> (ModeOrder, String) {
        let mode = match &order.mode {
            Some(mode) => mode.clone(),
            None => mode_after_plan(&self.meta),
        };
        let order = ModeOrder {
            mode: Some(mode.clone()),
            ..order
        };
        (order, mode)
    }

    /// The program has answered.
    pub(crate) async fn mode_answered(
        &mut self,
        mode: &str,
        refused: Option<&str>,
        orders: &Sender<Order>,
    ) {
        let mut modes = self.modes.iter();
        let at = modes.position(|order| order.mode.as_deref() == Some(mode));
        // A change that no order asked for is the program's own business.
        let Some(order) = at.and_then(|at| self.modes.remove(at)) else {
            return;
        };
        let usual = PermissionMode::default();
        let wide = PermissionMode::of_agent(mode).is_some_and(|mode| mode.is_wider_than(usual));
        if let (Some(why), None, true) = (refused, &order.request, wide) {
            // Some modes a program has only from its start; the plan can be carried out all
            // the same.
            self.record.note(format!("not in mode {mode:?}: {why}"));
            let order = ModeOrder {
                mode: Some(usual.as_str().to_owned()),
                ..order
            };
            self.set_mode(order, orders).await;
            return;
        }
        self.mode_is(&order, refused);
    }

    fn mode_is(&mut self, order: &ModeOrder, refused: Option<&str>) {
        let mode = order.mode.as_deref().unwrap_or_default();
        match refused {
            None => {
                // A resume starts it in this mode.
                change_mode(&mut self.meta, mode, order);
                self.write_meta();
            }
            Some(why) => self.record.note(format!("not in mode {mode:?}: {why}")),
        }
        if let Err(error) = self.services.mode_set(order, &self.meta, refused) {
            tracing::warn!(%error, "nobody is told of the agent's mode");
        }
        if let (None, Some(why)) = (&order.request, refused) {
            let text = format!("Its plan is approved, but it is still in plan mode: {why}");
            self.services.tell_parent("still in plan mode", &text).ok();
        }
    }
}

/// Notes the mode, and what it will be after it if that is planning.
fn change_mode(meta: &mut Meta, mode: &str, order: &ModeOrder) {
    let plan = PermissionMode::Plan.as_str();
    let before = meta.permission_mode.replace(mode.to_owned());
    if mode != plan {
        meta.launch.mode_before_plan = None;
    } else if before.as_deref() != Some(plan) {
        meta.launch.mode_before_plan = before;
    }
    // The permissions of one plan end with the next.
    if mode == plan || order.request.is_none() {
        meta.launch.allowed_commands = order.allowed_commands.clone();
    }
}

/// The mode of an agent whose plan is approved: the one from before, where that is known.
fn mode_after_plan(meta: &Meta) -> String {
    let most = meta.launch.most_mode.as_deref();
    let most = most.and_then(PermissionMode::of_agent);
    let usual = || {
        let usual = PermissionMode::default();
        most.map_or(usual, |most| usual.at_most(most))
    };
    let before = meta.launch.mode_before_plan.clone();
    before.unwrap_or_else(|| usual().as_str().to_owned())
}

/// The reason why an order is not carried out, whatever the program can do.
fn not_allowed(order: &ModeOrder) -> Option<String> {
    if order.refused.is_some() {
        return order.refused.clone();
    }
    match order.mode.as_deref().unwrap_or_default() {
        // It had this mode before it planned.
        mode if order.request.is_none() && PermissionMode::of_agent(mode).is_some() => None,
        // No message gives an agent a mode that only its definition can give it.
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
