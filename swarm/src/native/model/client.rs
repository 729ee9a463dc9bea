//! A model that can be asked.

use std::ffi::OsString;
use std::sync::OnceLock;

use bytes::Bytes;
use store::secret_filter::SecretFilter;

use super::error::ModelError;
use super::http::Http;
use super::retry;
use super::{Answer, Provider};
use crate::native::tools::BoxFuture;

/// Something that answers. Dropping the future breaks the request off.
pub(in crate::native) trait Model: Send + Sync {
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
pub(in crate::native) struct Client {
    provider: Provider,
    env: Vec<(OsString, OsString)>,
    /// What must be in no text.
    secrets: SecretFilter,
    http: OnceLock<Result<Http, String>>,
}

impl Client {
    pub(in crate::native) fn new(provider: Provider, env: Vec<(OsString, OsString)>) -> Self {
        Self {
            secrets: provider.secret_filter(&env),
            provider,
            env,
            http: OnceLock::new(),
        }
    }

    fn http(&self) -> Result<&Http, ModelError> {
        let http = self
            .http
            .get_or_init(|| Http::new(&self.provider, &self.env));
        http.as_ref().map_err(|words| ModelError::Refused {
            words: words.clone(),
        })
    }

    /// Sends `body` once.
    pub(in crate::native) async fn ask_once(&self, body: Bytes) -> Result<Answer, ModelError> {
        let answer = self.http()?.post(body, &self.provider).await;
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

impl Model for Client {
    fn ask<'a>(
        &'a self,
        body: Bytes,
        stalled: &'a (dyn Fn(String) + Send + Sync),
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        Box::pin(self.try_often(body, stalled))
    }
}
