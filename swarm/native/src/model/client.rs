//! A model that can be asked.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use store::secret_filter::SecretFilter;
use tokio::task::JoinHandle;

use super::error::ModelError;
use super::http::Http;
use super::provider::secret_filter;
use super::retry;
use super::{Answer, Provider};
use crate::shared::Together;
use crate::tools::BoxFuture;

/// A model that answers. Dropping the future breaks the request off.
pub(crate) trait Model: Send + Sync {
    /// Sends `body` and waits for the whole answer, again and again where that helps. `stalled`
    /// hears why it takes longer.
    fn ask<'a>(
        &'a self,
        body: Bytes,
        stalled: &'a (dyn Fn(String) + Send + Sync),
    ) -> BoxFuture<'a, Result<Answer, ModelError>>;
}

/// A model behind HTTP.
#[derive(Debug)]
pub(crate) struct Client {
    provider: Provider,
    env: Vec<(OsString, OsString)>,
    /// The secrets that are removed from every text.
    secrets: SecretFilter,
    http: OnceLock<Result<Arc<Http>, String>>,
    /// The shared scheduler that makes requests; `None` if this one does.
    together: Option<Together>,
}

impl Client {
    pub(crate) fn new(
        provider: Provider,
        env: Vec<(OsString, OsString)>,
        together: Option<Together>,
    ) -> Self {
        Self {
            secrets: secret_filter(&provider, &env),
            provider,
            env,
            http: OnceLock::new(),
            together,
        }
    }

    fn http(&self) -> Result<&Arc<Http>, ModelError> {
        let clients = self.together.as_ref().map(|together| &*together.clients);
        let made = || Http::new(&self.provider, &self.env, clients).map(Arc::new);
        let http = self.http.get_or_init(made);
        http.as_ref().map_err(|words| ModelError::Refused {
            words: words.clone(),
        })
    }

    /// Sends `body` once.
    pub(crate) async fn ask_once(&self, body: Bytes) -> Result<Answer, ModelError> {
        let http = self.http()?;
        let answer = match &self.together {
            None => http.post(body, &self.provider).await,
            Some(together) => {
                // Connections belong to the scheduler that made them, so all are made by one.
                let (http, provider) = (Arc::clone(http), self.provider.clone());
                let asked = together
                    .net
                    .spawn(async move { http.post(body, &provider).await });
                let mut asked = EndOnDrop(asked);
                (&mut asked.0).await.unwrap_or_else(|error| {
                    let words = format!("a bug in ccb ended the request: {error}");
                    Err(ModelError::Refused { words })
                })
            }
        };
        answer.map_err(|error| error.without(&self.secrets))
    }

    async fn try_often(
        &self,
        body: Bytes,
        stalled: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Answer, ModelError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.ask_once(body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(wait) = retry::wait(&error, tries) else {
                return Err(retry::given_up(error, tries));
            };
            stalled(format!(
                "{}; retrying in {:.1} s",
                error.words(),
                wait.as_secs_f64()
            ));
            tokio::time::sleep(wait).await;
        }
    }
}

/// Breaks a request off when its caller drops it.
struct EndOnDrop<T>(JoinHandle<T>);

impl<T> Drop for EndOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Model for Client {
    fn ask<'a>(
        &'a self,
        body: Bytes,
        stalled: &'a (dyn Fn(String) + Send + Sync),
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.try_often(body, stalled))
    }
}
