//! The registry core: what is registered, who may change it, and when it ends. No network, no wire format.
//!
//! All changes go through one apply loop (`writer`); readers hold immutable snapshots and never wait.

pub mod appearances;
pub mod apply;
pub mod command;
pub mod digest;
mod draft;
pub mod follow;
pub mod hash;
pub mod heartbeat;
pub mod index;
pub mod instance;
pub mod journal;
pub mod key;
pub mod lease;
pub mod lease_table;
pub mod limits;
pub mod list;
pub mod metadata;
pub mod overlay;
pub mod owners;
pub mod publication;
mod removals;
pub mod renewal;
pub mod replication;
pub mod select;
pub mod selector;
pub mod service;
pub mod settings;
pub mod share;
pub mod snapshot;
pub mod store;
pub mod switches;
pub mod version;
pub mod watches;
mod writer;

pub use self::{
    command::{Command, Error, NamespaceCommand, NamespaceInfo, Reply, Selection, ServiceChange, ServiceCommand},
    instance::Instance,
    key::{Address, ClusterName, Endpoint, Group, InstanceKey, Namespace, ServiceKey, ServiceName, Target},
    limits::Limits,
    metadata::Metadata,
    publication::{Kind, Publication, Weight},
    renewal::BeatResult,
    settings::Settings,
    snapshot::Snapshot,
    store::{Figures, RegistryHandle},
};
