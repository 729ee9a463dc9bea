//! The address of a service: from the settings, else from the vendor's variable, else the vendor's
//! own address. A user behind a gateway sets the variable once, and no prompt and no key passes the
//! gateway by.

use std::fmt;

use store::settings::{ProviderKind, ProviderSettings, wrong_url};

use super::{ProviderError, Providers};

/// The address of a service, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Without a slash at its end.
    pub url: String,
    /// The source of the address.
    pub from: AddressFrom,
}

/// The source of a service's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressFrom {
    /// `baseUrl` in the settings.
    Settings,
    /// This variable.
    Variable(&'static str),
    /// The vendor's own address: no setting names another one.
    Vendor,
}

impl fmt::Display for AddressFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings => f.write_str("baseUrl in the settings"),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Vendor => f.write_str("the vendor's own address"),
        }
    }
}

/// The variable that names another address for services of a kind, in every program of the vendor.
pub(super) fn variable(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Anthropic => "ANTHROPIC_BASE_URL",
        ProviderKind::OpenaiChat | ProviderKind::OpenaiResponses => "OPENAI_BASE_URL",
    }
}

impl Providers<'_> {
    /// The address of the service `name`.
    pub fn address(&self, name: &str) -> Result<Address, ProviderError> {
        if !self.names().contains(&name) {
            return Err(self.unknown(name));
        }
        let settings = self.configured.get(name).copied();
        self.address_of(self.kind_of(name), settings)
    }

    pub(super) fn address_of(
        &self,
        kind: ProviderKind,
        settings: Option<&ProviderSettings>,
    ) -> Result<Address, ProviderError> {
        let own = settings.and_then(|settings| settings.base_url.clone());
        let variable = variable(kind);
        let (url, from) = match (own, self.var(variable)) {
            (Some(url), _) => (url, AddressFrom::Settings),
            (None, Some(url)) => {
                let url = url.trim().to_owned();
                if let Some(why) = wrong_url(&url) {
                    return Err(ProviderError::BadUrl { variable, why });
                }
                (url, AddressFrom::Variable(variable))
            }
            (None, None) => (kind.base_url().to_owned(), AddressFrom::Vendor),
        };
        let url = url.trim_end_matches('/').to_owned();
        Ok(Address { url, from })
    }
}
