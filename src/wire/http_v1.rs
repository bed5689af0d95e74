//! The forms and bodies of the v1 HTTP API (Nacos 1.4 and 2.5; their union where they differ).

mod form;
mod list;
mod metadata;
mod value;

pub use self::{
    form::{FormError, Params},
    list::{Frame, host, list_body, push_string},
    metadata::{MetadataError, metadata_pairs},
    value::ParamError,
};
