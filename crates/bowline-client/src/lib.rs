//! The API's types, and a typed client of it: of the hub's over HTTPS, of the agent's on loopback.
//!
//! With the feature `http` off only [`api`] is there: the shapes that those who serve it share.

pub mod api;
