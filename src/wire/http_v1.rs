//! The forms and bodies of the v1 HTTP API (Nacos 1.4 and 2.5; their union where they differ).

mod checker;
mod form;
mod list;
mod member;
mod metadata;
mod pattern;
mod selector;
mod service;
mod subscriber;
mod switches;
mod value;

pub use self::{
    checker::{checker, checker_json, checkers_json},
    form::{FormError, Params},
    list::{Frame, list_body},
    member::{Member, envelope, member_json},
    metadata::{MetadataError, metadata_pairs},
    pattern::NamePattern,
    selector::{ListSelector, SelectorError, selector, selector_json},
    service::{catalog_service_body, clusters, instance_row, service_body, service_row, service_row_with_instances},
    subscriber::{SubscriberRow, subscriber_json},
    switches::{SwitchError, switch_change, switches_json},
    value::ParamError,
};
