//! Wire forms and the registry's values, translated into each other. No I/O.

pub mod http_v1;
