//! A real server: changes happen once, whatever happens to the link.

#[cfg(test)]
mod cases;
