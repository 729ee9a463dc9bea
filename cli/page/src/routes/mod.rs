//! The requests, and the functions that answer them.

mod sign_in;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use coordinator::perform;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use observe::live::{self, Act, Live};
use observe::report::{self, history};
use project::workplace::Workplace;
use serde::Deserialize;
use serde_json::{Value, json};
use store::name::Name;
use store::{Category, Failure};
use tokio::sync::{Semaphore, mpsc};

use self::sign_in::ask_for_token;
use crate::assets;
use crate::connection::Connection;
use crate::console::Notice;
use crate::guard::Guard;
use crate::http::{self, Out, event, failure, parameter};
use crate::pieces;
use crate::refused::{Refused, refuse};
use crate::state::{Seen, State};
use crate::transcript;
use crate::watcher::Watcher;

/// Maximum size of a request, in bytes.
const LARGEST: usize = 256 * 1024;
/// Minimum time between two updates: no person sees more.
const PACE: Duration = Duration::from_millis(250);
/// Interval between signs of life to a browser that gets no updates, so that both sides notice a
/// broken connection.
const ALIVE: Duration = Duration::from_secs(15);
/// Maximum number of slow operations at once: diffs, reports, acts.
const AT_ONCE: usize = 4;

/// The data that answers need.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) guard: Guard,
    pub(super) state: Arc<State>,
    pub(super) watcher: Watcher,
    pub(super) workplace: Workplace,
    notices: SyncSender<Notice>,
    slow: Semaphore,
}

/// An action of the person in the page.
#[derive(Debug, Deserialize)]
pub(super) struct Wish {
    team: String,
    act: Act,
}

impl Server {
    pub(super) fn new(
        guard: Guard,
        state: Arc<State>,
        watcher: Watcher,
        at: &Workplace,
        notices: SyncSender<Notice>,
    ) -> Self {
        Self {
            guard,
            state,
            watcher,
            workplace: at.clone(),
            notices,
            slow: Semaphore::new(AT_ONCE),
        }
    }

    /// Tells the person at the terminal; the notice is lost if too many wait.
    pub(super) fn tell(&self, notice: Notice) {
        self.notices.try_send(notice).ok();
    }

    /// Answers one request, if its sender may send it.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Response<Out> {
        if let Err(refused) = self.guard.is_ours(request.headers(), request.uri()) {
            return refuse(&refused);
        }
        let first = (request.method(), request.uri().path());
        let code = parameter(request.uri().query(), "code");
        if let ((&Method::GET, "/"), Some(code)) = (first, code) {
            let headers = request.headers();
            return self.enter_with_code(&code, headers, connection).await;
        }
        if first == (&Method::POST, "/sign-in") {
            return self.enter_with_token(request, connection).await;
        }
        let changes = first.0 != Method::GET;
        if let Err(refused) = self.guard.may(request.headers(), changes) {
            let asks = refused == Refused::Secret && first == (&Method::GET, "/");
            return match asks && self.guard.has_token() {
                true => ask_for_token(),
                false => refuse(&refused),
            };
        }
        if changes && let Err(refused) = self.may_decide(connection.peer().await) {
            return refuse(&refused);
        }
        self.answer_to_one_of_ours(request).await
    }

    async fn answer_to_one_of_ours(&self, request: Request<Incoming>) -> Response<Out> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().map(str::to_owned);
        let query = query.as_deref();
        match (request.method(), path.as_str()) {
            (&Method::GET, "/events") => self.events(&request),
            (&Method::GET, "/api/task") => self.task(query),
            (&Method::GET, "/api/transcript") => self.transcript(query),
            (&Method::GET, "/api/changes") => self.changes(query).await,
            (&Method::GET, "/api/report") => self.report(query).await,
            (&Method::GET, "/api/runs") => self.runs().await,
            (&Method::GET, "/report") => self.page(query).await,
            (&Method::POST, "/api/act") => self.act(request).await,
            (&Method::GET, path) => match assets::find(path) {
                Some((kind, text)) => http::text(StatusCode::OK, kind, text),
                None => http::text(
                    StatusCode::NOT_FOUND,
                    "text/plain",
                    "There is no such page.",
                ),
            },
            _ => {
                let words = "Nothing here can be changed like this.";
                http::text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", words)
            }
        }
    }

    /// Streams all changes, from the browser's last known state on.
    fn events(&self, request: &Request<Incoming>) -> Response<Out> {
        let seen = request.headers().get("last-event-id");
        let mut seen = seen.and_then(|seen| Seen::parse(seen.to_str().ok()?));
        let state = Arc::clone(&self.state);
        let mut changed = state.subscribe();
        // The watcher may have slept because no browser listened.
        self.watcher.wake();
        let (to, from) = mpsc::channel(2);
        tokio::spawn(async move {
            loop {
                changed.borrow_and_update();
                if let Some(update) = state.since(seen.as_ref()) {
                    let bytes = event(Some(&update.seen.to_string()), &update.json);
                    if to.send(bytes).await.is_err() {
                        return;
                    }
                    seen = Some(update.seen);
                }
                tokio::time::sleep(PACE).await;
                tokio::select! {
                    heard = changed.changed() => if heard.is_err() { return },
                    () = tokio::time::sleep(ALIVE) => {
                        if to.send(Bytes::from_static(b": still here\n\n")).await.is_err() {
                            return;
                        }
                    }
                    () = to.closed() => return,
                }
            }
        });
        http::events(from)
    }

    fn task(&self, query: Option<&str>) -> Response<Out> {
        let (team, id) = (parameter(query, "team"), parameter(query, "id"));
        let id = id.and_then(|id| id.parse().ok());
        let scene = self.state.scene();
        let found = team
            .zip(id)
            .and_then(|(team, id)| scene.team(&team)?.task(id));
        match found {
            Some(task) => http::json(StatusCode::OK, &pieces::task_whole(task)),
            None => failure(&gone("task")),
        }
    }

    /// Streams what an agent says and does.
    fn transcript(&self, query: Option<&str>) -> Response<Out> {
        let (team, agent) = (parameter(query, "team"), parameter(query, "agent"));
        let Some((team, agent)) = team.zip(agent) else {
            return failure(&gone("agent"));
        };
        let known = self.state.scene();
        let known = known
            .team(&team)
            .is_some_and(|team| team.agents.iter().any(|it| it.id == agent));
        if !known {
            return failure(&gone("agent"));
        }
        let reader = Live::open(&self.workplace).and_then(|live| live.transcript(&team, &agent));
        match reader {
            Ok(reader) => http::events(transcript::follow(reader)),
            Err(error) => failure(&error),
        }
    }

    async fn changes(&self, query: Option<&str>) -> Response<Out> {
        let (team, what) = (parameter(query, "team"), parameter(query, "what"));
        let Some((team, what)) = team.zip(what) else {
            return failure(&gone("task"));
        };
        let workplace = self.workplace.clone();
        self.slowly(move || {
            let there = workplace.in_team(&Name::new("team", &team)?);
            let found = live::changes(&what, &there)?;
            let file = |file: &worktrees::patch::FileStat| {
                json!({"path": file.path, "added": file.added, "deleted": file.deleted})
            };
            Ok(json!({
                "worktree": found.worktree,
                "uncommitted": found.uncommitted,
                "files": found.files.iter().map(file).collect::<Vec<_>>(),
                "diff": found.diff,
                "cut": found.cut,
            }))
        })
        .await
    }

    async fn report(&self, query: Option<&str>) -> Response<Out> {
        let Some(team) = parameter(query, "team") else {
            return failure(&gone("team"));
        };
        let workplace = self.workplace.clone();
        self.slowly(move || {
            let there = workplace.in_team(&Name::new("team", &team)?);
            let report = report::of_team_without_diffs(&there)?;
            serde_json::to_value(report).map_err(|error| Failure::internal(error.to_string()))
        })
        .await
    }

    async fn runs(&self) -> Response<Out> {
        let workplace = self.workplace.clone();
        self.slowly(move || Ok(json!(history::list(&workplace)?)))
            .await
    }

    /// A report as its own page; it contains its own policy, which is stricter.
    async fn page(&self, query: Option<&str>) -> Response<Out> {
        let (workplace, what) = (self.workplace.clone(), parameter(query, "what"));
        let made = self
            .aside(move || Ok(report::html(&report::find(what.as_deref(), &workplace)?)))
            .await;
        match made {
            Ok(page) => {
                let mut response = http::text(StatusCode::OK, "text/html; charset=utf-8", page);
                // The file's own policy names its style by a hash, which this one would refuse.
                let policy = HeaderValue::from_static("frame-ancestors 'none'");
                response
                    .headers_mut()
                    .insert("content-security-policy", policy);
                response
            }
            Err(error) => failure(&error),
        }
    }

    async fn act(&self, request: Request<Incoming>) -> Response<Out> {
        let kind = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if kind.is_none_or(|kind| !kind.starts_with("application/json")) {
            let words = "Send JSON.";
            return http::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "text/plain", words);
        }
        let body = Limited::new(request.into_body(), LARGEST).collect().await;
        let Ok(body) = body.map(http_body_util::Collected::to_bytes) else {
            let message = format!("more than {LARGEST} bytes");
            return failure(&Failure::usage("too_long", message));
        };
        let wish: Wish = match serde_json::from_slice(&body) {
            Ok(wish) => wish,
            Err(error) => return failure(&Failure::usage("bad_act", error.to_string())),
        };
        let workplace = self.workplace.clone();
        let answer = self
            .slowly(move || {
                let stop = AtomicBool::new(false);
                let said = perform::act(&wish.act, &wish.team, &workplace, &stop)?;
                Ok(json!({ "said": said }))
            })
            .await;
        self.watcher.wake();
        answer
    }

    async fn slowly(
        &self,
        work: impl FnOnce() -> Result<Value, Failure> + Send + 'static,
    ) -> Response<Out> {
        match self.aside(work).await {
            Ok(value) => http::json(StatusCode::OK, &value),
            Err(error) => failure(&error),
        }
    }

    /// Runs a function on its own thread, a few at once.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let _turn = self.slow.acquire().await;
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(Failure::internal(error.to_string())))
    }
}

fn gone(what: &str) -> Failure {
    let message = format!("there is no such {what} any more");
    Failure::new(Category::NotFound, "not_found", message)
}
