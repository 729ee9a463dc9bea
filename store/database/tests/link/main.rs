//! A real server: changes happen once, whatever happens to the link.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod encrypted;
#[cfg(test)]
mod pooled;
#[cfg(test)]
mod unlucky;
