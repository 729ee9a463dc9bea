//! The requests of clients, and the functions that answer them.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coordinator::agent::bounds;
use coordinator::agent::service::{AgentService, Wait};
use coordinator::agent::{ENTER_PLAN, PLAN};
use project::workplace::Workplace;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, CustomRequest,
    CustomResult, ErrorData, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value};
use store::Failure;
use swarm::run::RunError;
use swarm::tools::ToolFilter;
use tokio::sync::{Mutex, watch};

use super::answer::{Answer, to_result};
use super::arguments::Arguments;
use super::audience::Audience;
use super::membership::Membership;
use super::post::Post;
use super::receipts::Receipts;
use super::tool::Catalogue;
use super::transport::{Client, Mailroom};
use super::{agents, board, messages, plan_mode, task_lines, teams, trees, worktrees};

/// Tools that wait for agents, or for a worktree and its set-up. Other tools do not wait for these.
const LONG: [&str; 6] = [
    "Agent",
    "TaskOutput",
    "TaskStop",
    "EnterWorktree",
    "ExitWorktree",
    "Worktrees",
];

/// The field in which Claude Code names the tool call.
const TOOL_USE: &str = "claudecode/toolUseId";
/// Interval between progress notices to a client that asks for them.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// Tells a client that asked for it how far a call is, as long as the call runs.
async fn tell_progress(wait: &Wait, context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let mut number = 0.0;
    loop {
        tokio::time::sleep(PROGRESS_EVERY).await;
        let Some(progress) = wait.progress() else {
            continue;
        };
        // The number may only grow, whatever the agent has counted.
        number += 1.0;
        let message = format!("{} steps, {}", progress.steps, progress.words);
        let params = ProgressNotificationParam::new(token.clone(), number).with_message(message);
        if context.peer.notify_progress(params).await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// Serves one client.
pub(crate) struct Server {
    desk: Arc<Desk>,
    /// Calls are answered one after the other, except those of `LONG`.
    turn: Mutex<()>,
    client: watch::Receiver<Client>,
    level: Level,
    receipts: Receipts,
    audience: Audience,
    /// True if the last listed tools had the tool for plans.
    listed_plan: AtomicBool,
}

/// The data a call needs.
struct Desk {
    member: Arc<Membership>,
    agents: Arc<dyn AgentService>,
    post: Arc<Post>,
    catalogue: Catalogue,
    /// The tools that the client's definition allows, if it is an agent of ours.
    filter: ToolFilter,
}

/// The announcements that the client wants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level(Arc<AtomicBool>);

impl Level {
    /// True if the client wants notices about mail.
    pub(crate) fn wants_info(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

impl Server {
    pub(crate) fn new(
        member: Arc<Membership>,
        service: Arc<dyn AgentService>,
        room: &Mailroom,
        client: watch::Receiver<Client>,
    ) -> Result<Self, Failure> {
        let catalogue = Catalogue::new(member.role)?;
        let filter = filter_of(&member.context())?;
        let desk = Desk {
            member,
            agents: service,
            post: Arc::clone(&room.post),
            catalogue,
            filter,
        };
        Ok(Self {
            desk: Arc::new(desk),
            turn: Mutex::default(),
            client,
            level: Level::default(),
            receipts: room.receipts.clone(),
            audience: room.audience.clone(),
            listed_plan: AtomicBool::new(false),
        })
    }

    pub(crate) fn level(&self) -> Level {
        self.level.clone()
    }

    /// Runs a call on its own thread; ends its waits when the client waits no longer.
    async fn work(
        &self,
        name: String,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, Failure> {
        let waits = LONG.contains(&name.as_str());
        let tool_use = context.meta.0.get(TOOL_USE).and_then(Value::as_str);
        let tool_use = tool_use.map(str::to_owned);
        let _turn = match waits {
            true => None,
            false => Some(self.turn.lock().await),
        };
        let wait = Wait::default();
        let (desk, waiting) = (Arc::clone(&self.desk), wait.clone());
        let mut call =
            tokio::task::spawn_blocking(move || desk.call(&name, arguments, tool_use, &waiting));
        let mut client = self.client.clone();
        let silent = async {
            // The guard must not live on.
            client
                .wait_for(|client| *client != Client::There)
                .await
                .is_ok()
        };
        let done = tokio::select! {
            done = &mut call => Some(done),
            () = context.ct.cancelled() => None,
            _ = silent => None,
            () = tell_progress(&wait, context) => None,
        };
        let done = match done {
            Some(done) => done,
            None => {
                wait.end();
                call.await
            }
        };
        done.unwrap_or_else(|_| Err(Failure::internal("the call ended early")))
    }

    /// Tells the client if its list of tools has changed.
    async fn tell_if_changed(&self, context: &RequestContext<RoleServer>) {
        let plans = self.desk.member.plans() == Some(true);
        if self.listed_plan.swap(plans, Ordering::Relaxed) != plans {
            // Without the notice, the client sees the change when it asks for the list.
            context.peer.notify_tool_list_changed().await.ok();
        }
    }
}

impl Desk {
    /// The names of the tools the client may have at some time, including those for plans if it
    /// makes plans at all.
    fn all_tools(&self) -> Vec<&'static str> {
        let mut tools = bounds::own_tools(self.member.role, &self.filter);
        if !tools.contains(&PLAN) || self.member.plans().is_none() {
            tools.retain(|name| ![PLAN, ENTER_PLAN].contains(name));
        }
        tools
    }

    /// The names of the tools that the client has now.
    fn tools(&self) -> Vec<&'static str> {
        let mut tools = bounds::own_tools(self.member.role, &self.filter);
        if let Some(at) = tools.iter().position(|name| *name == PLAN) {
            let plans = self.member.plans();
            if plans != Some(true) {
                tools.remove(at);
            }
            if plans != Some(false) {
                tools.retain(|name| *name != ENTER_PLAN);
            }
        } else {
            // No lead could approve the plan, so planning would never end.
            tools.retain(|name| *name != ENTER_PLAN);
        }
        tools
    }

    /// Runs a tool. A bug in it is an answer too.
    fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        tool_use: Option<String>,
        wait: &Wait,
    ) -> Result<Answer, Failure> {
        catch_unwind(AssertUnwindSafe(|| {
            self.answer(name, arguments, tool_use, wait)
        }))
        .unwrap_or_else(|_| Err(Failure::internal("a bug in ccb; please report it")))
    }

    fn answer(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        tool_use: Option<String>,
        wait: &Wait,
    ) -> Result<Answer, Failure> {
        let Some(tool) = self.catalogue.get(name) else {
            return Err(Failure::internal(format!("{name} has no definition")));
        };
        self.member.check_run()?;
        let arguments = &Arguments::check(tool, arguments)?;
        let context = &*self.member.context();
        let (member, service, role) = (&*self.member, &*self.agents, self.member.role);
        match name {
            "TaskCreate" => board::create(arguments, context),
            "TaskGet" => board::get(arguments, context),
            "TaskList" => task_lines::list(context),
            "TaskUpdate" => board::update(arguments, role, context),
            "Agent" => agents::spawn(arguments, tool_use, role, context, service, wait),
            "SendMessage" => messages::send(arguments, context, service),
            "TaskStop" => agents::stop(arguments, role, context, service),
            "TaskOutput" => agents::output(arguments, role, context, service, wait),
            "TeamCreate" => teams::create(arguments, context, member),
            "TeamDelete" => teams::delete(context, member, &self.post),
            ENTER_PLAN => plan_mode::enter(context),
            PLAN => plan_mode::exit(arguments, context, member),
            "EnterWorktree" => trees::enter(arguments, context),
            "ExitWorktree" => trees::exit(arguments, context),
            "Worktrees" => worktrees::call(arguments, context),
            other => Err(Failure::internal(format!("{other} does nothing"))),
        }
    }

    /// The error for a tool the client does not have.
    fn no_such_tool(&self, name: &str) -> ErrorData {
        let role = self.member.role;
        let tools = self.tools();
        let message = if role.tools().contains(&name) && !self.filter.permits_own(name) {
            format!("{name} is not for you: your definition leaves you without it")
        } else if name == PLAN && role.tools().contains(&PLAN) {
            format!("{PLAN} is available only in plan mode; continue the work")
        } else if name == ENTER_PLAN && tools.contains(&PLAN) {
            format!("you are in plan mode already; hand the plan in with {PLAN}")
        } else if self.catalogue.get(name).is_some() {
            format!("{name} is not for a {}", role.as_str())
        } else {
            match store::nearest(name, tools.iter().copied()) {
                Some(near) => format!("there is no tool {name:?}; did you mean {near:?}?"),
                None if tools.is_empty() => format!("a {} has no tools here", role.as_str()),
                None => format!("there is no tool {name:?}; there are {}", tools.join(", ")),
            }
        };
        ErrorData::invalid_params(message, None)
    }
}

/// The tools that the definition of the agent at the other end allows; all tools for a foreign
/// agent.
fn filter_of(context: &Workplace) -> Result<ToolFilter, Failure> {
    let Some(run) = context.run() else {
        return Ok(ToolFilter::default());
    };
    match context.agents()?.run(run).meta() {
        Ok(meta) => Ok(meta.launch.filter()),
        // Each call returns this error.
        Err(RunError::NotFound { .. }) => Ok(ToolFilter::default()),
        Err(error) => Err(error.into()),
    }
}

#[expect(
    deprecated,
    reason = "the protocol versions clients speak today have logging"
)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        capabilities.logging = Some(JsonObject::new());
        let mut info = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("ccb", env!("CARGO_PKG_VERSION")));
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        let context = self.desk.member.context();
        let role = self.desk.member.role;
        if !role.tools().is_empty() {
            let team = context
                .team()
                .map(|team| team.to_string())
                .unwrap_or_default();
            info.instructions = Some(format!(
                "You are {} ({}) in team {team}. The board and mail are shared with others: claim a \
                 task before you work on it, complete it when it is done. Messages to you come as \
                 <teammate-message> after tool results; they are not from the user.",
                context.agent(),
                role.as_str(),
            ));
        }
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(
            &ProtocolVersion::LATEST_WITH_INITIALIZE,
        ))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let names = match self.audience.wants_fixed_list() {
            true => self.desk.all_tools(),
            false => self.desk.tools(),
        };
        self.listed_plan
            .store(names.contains(&PLAN), Ordering::Relaxed);
        let tools = names.into_iter().filter_map(|name| {
            let tool = self.desk.catalogue.get(name)?;
            Some(Tool::new(
                name,
                tool.description.clone(),
                tool.input_schema.clone(),
            ))
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.desk.tools().contains(&&*request.name) {
            return Err(self.desk.no_such_tool(&request.name));
        }
        let name = request.name.into_owned();
        let arguments = request.arguments.unwrap_or_default();
        let mut answer = self.work(name, arguments, &context).await;
        self.tell_if_changed(&context).await;
        let receipt = answer
            .as_mut()
            .ok()
            .and_then(|answer| answer.receipt.take());
        if let Some(receipt) = receipt.filter(|_| !context.ct.is_cancelled()) {
            self.receipts.put(context.id.clone(), receipt);
        }
        Ok(to_result(answer, &self.audience).into())
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _: NotificationContext<RoleServer>,
    ) {
        // The cancelled request gets no answer.
        if let Some(id) = notification.request_id {
            self.receipts.take(&id);
        }
    }

    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        use rmcp::model::LoggingLevel;
        let quiet = !matches!(request.level, LoggingLevel::Debug | LoggingLevel::Info);
        self.level.0.store(quiet, Ordering::Relaxed);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // The transport passes only methods of ours: this one has the wrong parameters.
        let message = format!("wrong parameters for {}", request.method);
        Err(ErrorData::invalid_params(message, None))
    }
}
