//! The board in a real database: links that break, servers that die, leases, many at once.

#![cfg(feature = "postgres")]

#[cfg(test)]
mod cuts;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod many;
#[cfg(test)]
mod pooled;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod site;
#[cfg(test)]
mod trouble;
