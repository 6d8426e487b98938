use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::quantity;
use rust_decimal::Decimal;

use super::texts::{Texts, share};

/// Amounts by resource name, sorted by name; a resource that is not listed is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amounts(Vec<(Arc<str>, Decimal)>);

impl Amounts {
    /// Reads requests. An unreadable amount counts as more than any node has, and a negative one as zero.
    pub fn read(quantities: Option<&BTreeMap<String, Quantity>>, texts: &mut Texts) -> Self {
        Self::read_or(quantities, Decimal::MAX, texts)
    }

    /// Reads what a node offers. An unreadable amount counts as zero.
    pub fn offered(quantities: Option<&BTreeMap<String, Quantity>>, texts: &mut Texts) -> Self {
        Self::read_or(quantities, Decimal::ZERO, texts)
    }

    fn read_or(quantities: Option<&BTreeMap<String, Quantity>>, unreadable: Decimal, texts: &mut Texts) -> Self {
        let amount = |text: &str| quantity::parse(text).unwrap_or(unreadable).max(Decimal::ZERO);
        let amounts = quantities
            .into_iter()
            .flatten()
            .map(|(name, Quantity(text))| (share(texts, name.as_str()), amount(text)));
        Self(amounts.collect())
    }

    /// The requests of a container; a limit counts if there is no request.
    pub fn requests(resources: Option<&ResourceRequirements>, texts: &mut Texts) -> Self {
        let mut all = Self::read(resources.and_then(|resources| resources.limits.as_ref()), texts);
        all.replace(&Self::read(
            resources.and_then(|resources| resources.requests.as_ref()),
            texts,
        ));
        all
    }

    /// The amount of a resource; zero if it is not listed.
    pub fn get(&self, resource: &str) -> Decimal {
        self.listed(resource).unwrap_or_default()
    }

    /// The amount of a resource, if it is listed.
    pub fn listed(&self, resource: &str) -> Option<Decimal> {
        self.find(resource).ok().map(|index| self.0[index].1)
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, resource: &Arc<str>, amount: Decimal) {
        self.merge(resource, |_| amount);
    }

    /// Takes a resource away.
    pub fn remove(&mut self, resource: &str) {
        self.0.retain(|(name, _)| &**name != resource);
    }

    /// Keeps only some resources.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    /// Adds amounts, saturating.
    pub fn add(&mut self, more: &Self) {
        for (name, amount) in &more.0 {
            self.merge(name, |known| known.saturating_add(*amount));
        }
    }

    /// Raises amounts to at least others.
    pub fn raise(&mut self, others: &Self) {
        for (name, amount) in &others.0 {
            self.merge(name, |known| known.max(*amount));
        }
    }

    /// Puts others in the place of those of the same name.
    pub fn replace(&mut self, others: &Self) {
        for (name, amount) in &others.0 {
            self.set(name, *amount);
        }
    }

    /// Names and amounts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Decimal)> {
        self.0.iter().map(|(name, amount)| (&**name, *amount))
    }

    /// Gives back spare memory, and entries of nothing.
    pub(super) fn trimmed(mut self) -> Self {
        self.0.retain(|(_, amount)| !amount.is_zero());
        self.0.shrink_to_fit();
        self
    }

    fn merge(&mut self, name: &Arc<str>, amount: impl FnOnce(Decimal) -> Decimal) {
        match self.find(name) {
            Ok(index) => self.0[index].1 = amount(self.0[index].1),
            Err(index) => self.0.insert(index, (name.clone(), amount(Decimal::ZERO))),
        }
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_amount_never_makes_room() {
        let quantities = BTreeMap::from([("cpu".to_owned(), Quantity("12 cores".to_owned()))]);
        let mut total = Amounts::read(Some(&quantities), &mut Texts::default());
        total.add(&total.clone());
        assert_eq!(total.get("cpu"), Decimal::MAX);
        assert_eq!(total.get("memory"), Decimal::ZERO);
        let offered = Amounts::offered(Some(&quantities), &mut Texts::default());
        assert_eq!(offered.get("cpu"), Decimal::ZERO);
    }
}
