//! The board in a real database: links that break, servers that die, leases, many at once.

#![cfg(feature = "postgres")]

mod cuts;
mod leases;
mod many;
mod proxy;
mod rate;
mod site;
mod trouble;
