//! Namespaces.

use super::DecodeError;
use crate::{
    registry::{Namespace, NamespaceInfo},
    wire::pb,
};

/// Longest name, in characters.
const NAME: usize = 128;
/// Longest description, in characters.
const DESCRIPTION: usize = 256;

/// What is said of the new namespace `id`; without a name it is called by its id.
///
/// # Errors
/// [`DecodeError::TooLong`] for a name or a description that is too long.
pub fn info(id: &Namespace, message: pb::Namespace) -> Result<NamespaceInfo, DecodeError> {
    let name = within("namespace.name", message.name, NAME)?;
    let name = if name.is_empty() { id.as_str().to_owned() } else { name };
    Ok(NamespaceInfo { name, description: within("namespace.description", message.description, DESCRIPTION)? })
}

/// `present` with the change that a request asks for.
///
/// # Errors
/// [`DecodeError`] for the first part that is refused.
pub fn change(
    id: &Namespace,
    present: NamespaceInfo,
    message: pb::Namespace,
    mask: Option<&prost_types::FieldMask>,
) -> Result<NamespaceInfo, DecodeError> {
    let set = [!message.name.is_empty(), !message.description.is_empty()];
    let [with_name, with_description] = super::changed(mask, ["name", "description"], set)?;
    let new = info(id, message)?;
    Ok(NamespaceInfo {
        name: if with_name { new.name } else { present.name },
        description: if with_description { new.description } else { present.description },
    })
}

/// A namespace, as a message. One that nobody created has services only; it is called by its id.
#[must_use]
pub fn message(id: &Namespace, info: Option<NamespaceInfo>, services: usize) -> pb::Namespace {
    let NamespaceInfo { name, description } = info.unwrap_or_default();
    pb::Namespace {
        id: id.as_str().to_owned(),
        name: if name.is_empty() { id.as_str().to_owned() } else { name },
        description,
        service_count: services as u64,
    }
}

fn within(field: &'static str, text: String, limit: usize) -> Result<String, DecodeError> {
    let length = text.chars().count();
    if length > limit { Err(DecodeError::TooLong { field, length, limit }) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::Classify, registry::Limits};

    #[test]
    fn a_change_touches_what_is_set() {
        let id = Limits::default().namespace("dev").unwrap();
        let present = NamespaceInfo { name: "Development".into(), description: "old".into() };
        let sent = pb::Namespace { description: "new".into(), ..Default::default() };
        let next = change(&id, present, sent, None).unwrap();
        assert_eq!(next, NamespaceInfo { name: "Development".into(), description: "new".into() });
        let long = pb::Namespace { name: "x".repeat(129), ..Default::default() };
        assert_eq!(info(&id, long).unwrap_err().field(), Some("namespace.name"));
        assert_eq!(info(&id, pb::Namespace::default()).unwrap().name, "dev");
    }
}
