//! Tests a model with one small request.

use std::ffi::OsString;
use std::time::Duration;

use bytes::Bytes;

use super::model::{Block, Client, Fixed, Format, Message, Provider, Role};

/// Asks the model for one word, without a retry if it refuses; the error says why, and what to do.
pub fn probe(
    provider: &Provider,
    env: &[(OsString, OsString)],
    limit: Duration,
) -> Result<(), String> {
    let provider = Provider {
        // Some refuse less.
        max_output: Some(16),
        ..provider.clone()
    };
    let format = Format(provider.wire);
    let head = format.head(&Fixed {
        provider: &provider,
        system: "",
        tools: &[],
        effort: None,
    });
    let question = format.encode(&Message {
        role: Role::User,
        blocks: vec![Block::text("Answer with the word yes.")],
    });
    let body = Bytes::from(format.body(&head, std::iter::once(&question), 0));
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let name = provider.name.clone();
    let client = Client::new(provider, env.to_vec(), None);
    let asked = tokio.block_on(async { tokio::time::timeout(limit, client.ask_once(body)).await });
    match asked {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.words().to_owned()),
        Err(_) => Err(format!(
            "{name} has not answered in {} s",
            limit.as_secs_f64()
        )),
    }
}
