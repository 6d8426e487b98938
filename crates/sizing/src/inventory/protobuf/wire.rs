//! The wire format: numbered fields, each with its length.

use std::collections::BTreeMap;

/// Bytes that are no protobuf, or that break off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is no valid protobuf")]
pub struct Malformed;

/// A message that is filled field by field. Unknown fields are left out.
pub trait Message: Default {
    /// Takes one field.
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed>;
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A number or a truth value.
    Varint(u64),
    /// A text, a message, or bytes.
    Bytes(&'a [u8]),
    /// Four or eight bytes, which nothing that is read here has.
    Fixed,
}

impl<'a> Value<'a> {
    /// Its bytes.
    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Fixed => Err(Malformed),
        }
    }

    /// Its text.
    pub fn text(self) -> Result<String, Malformed> {
        let text = str::from_utf8(self.bytes()?).map_err(|_| Malformed)?;
        Ok(text.to_owned())
    }

    /// Its text, if there is any: a Go string that is not set is written as an empty one.
    pub fn text_if_any(self) -> Result<Option<String>, Malformed> {
        Ok(Some(self.text()?).filter(|text| !text.is_empty()))
    }

    /// A message.
    pub fn message<M: Message>(self) -> Result<M, Malformed> {
        decode(self.bytes()?)
    }

    /// A number.
    pub fn number(self) -> Result<i64, Malformed> {
        match self {
            Self::Varint(number) => Ok(number.cast_signed()),
            Self::Bytes(_) | Self::Fixed => Err(Malformed),
        }
    }

    /// A truth value.
    pub fn truth(self) -> Result<bool, Malformed> {
        Ok(self.number()? != 0)
    }

    /// Adds a message to a list of them.
    pub fn push_to<M: Message>(self, list: &mut Option<Vec<M>>) -> Result<(), Malformed> {
        list.get_or_insert_default().push(self.message()?);
        Ok(())
    }

    /// Adds an entry to a map of texts.
    pub fn insert_text_into(self, map: &mut Option<BTreeMap<String, String>>) -> Result<(), Malformed> {
        let Text { key, value } = self.message()?;
        map.get_or_insert_default().insert(key, value);
        Ok(())
    }

    /// Adds an entry to a map of messages.
    pub fn insert_into<M: Message>(self, map: &mut Option<BTreeMap<String, M>>) -> Result<(), Malformed> {
        self.insert_required(map.get_or_insert_default())
    }

    /// Adds an entry to a map of messages that is always there.
    pub fn insert_required<M: Message>(self, map: &mut BTreeMap<String, M>) -> Result<(), Malformed> {
        let Entry { key, value } = self.message()?;
        map.insert(key, value);
        Ok(())
    }
}

/// An entry of a map of messages.
#[derive(Default)]
struct Entry<M> {
    key: String,
    value: M,
}

/// An entry of a map of texts.
#[derive(Default)]
struct Text {
    key: String,
    value: String,
}

impl Message for Text {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.key = value.text()?,
            2 => self.value = value.text()?,
            _ => {}
        }
        Ok(())
    }
}

impl<M: Message> Message for Entry<M> {
    fn set(&mut self, field: u32, value: Value<'_>) -> Result<(), Malformed> {
        match field {
            1 => self.key = value.text()?,
            2 => self.value = value.message()?,
            _ => {}
        }
        Ok(())
    }
}

/// Reads a message.
pub fn decode<M: Message>(bytes: &[u8]) -> Result<M, Malformed> {
    let mut message = M::default();
    for field in fields(bytes) {
        let (number, value) = field?;
        message.set(number, value)?;
    }
    Ok(message)
}

/// The fields of a message, one after the other.
pub fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields { rest: bytes }
}

/// The unread rest of a message.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field().ok_or(Malformed);
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0)?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        Some((number, value))
    }

    /// Seven bits a byte, the lowest first; the last byte has its highest bit unset.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}
