use serde_json::{Value, json};

/// How the API server names a refusal of a code.
pub(super) fn reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => "Unknown",
    }
}

/// A Status answer other than success.
#[derive(Debug)]
pub(super) struct Refusal {
    pub code: u16,
    reason: String,
    message: String,
    /// Name of the object that it is about; empty for none.
    name: String,
    /// Cause for programs.
    cause: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            name: String::new(),
            cause: None,
        }
    }

    pub(super) fn about(self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self
        }
    }

    pub(super) fn because(self, cause: &'static str) -> Self {
        Self {
            cause: Some(cause),
            ..self
        }
    }

    pub(super) fn not_found(plural: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{plural} \"{name}\" not found")).about(name)
    }

    pub(super) fn already_exists(plural: &str, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{plural} \"{name}\" already exists"))
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    pub(super) fn status(&self) -> Value {
        let causes: Vec<Value> = self.cause.iter().map(|cause| json!({"reason": cause})).collect();
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
            "details": {"name": self.name, "causes": causes},
        })
    }
}
