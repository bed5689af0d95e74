//! What one member says of one instance: the unit that members exchange. An instance is listed as the merge of its shares.

use super::{publication::Publication, version::Version};

/// One member's word on an instance. Only that member ever changes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Whose word it is, and how new.
    pub version: Version,
    /// Whether beats keep it.
    pub beats: bool,
    /// Whether connections of its owner keep it.
    pub connections: bool,
    /// What the publisher said; `healthy` as its owner sees it now.
    pub publication: Publication,
    /// The unique number in the instance's id, if its id is made that way.
    pub snowflake: Option<u64>,
}
