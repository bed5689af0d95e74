//! The cluster: who the other members are, and what is said between them.

pub mod member;
