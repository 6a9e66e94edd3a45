//! Results by their settings, within a budget of memory: going back is instant, and the oldest go first.

use std::sync::Arc;

use super::{BigStepPart, BigStepRequest, Cell, ChainRequest, Memory, ModelId, kept::KeptChain};
use crate::sampler::Settings;

/// The limit that an engine starts with, in bytes.
pub const DEFAULT_BUDGET: usize = 256 << 20;

/// What decides a result, short of the version of a model in training.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Key {
    Chain(Arc<ChainRequest>),
    Cell { model: ModelId, n: usize, seeds: Vec<u64>, settings: Settings },
    BigStep(Arc<BigStepRequest>),
}

/// A result.
pub(super) enum Item {
    Chain(Box<KeptChain>),
    Cell(Arc<Cell>),
    BigStep(Vec<Arc<BigStepPart>>),
}

impl Item {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Chain(chain) => chain.n_bytes(),
            Self::Cell(cell) => cell.pictures.pixels.len() + size_of::<Cell>(),
            Self::BigStep(parts) => {
                let one = |part: &Arc<BigStepPart>| 2 * part.view.bits.len() + part.view.pictures.pixels.len();
                parts.iter().map(|part| one(part) + size_of::<BigStepPart>()).sum()
            }
        }
    }
}

/// Names a result as long as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(u64);

struct Entry {
    id: Id,
    key: Key,
    version: u64,
    item: Item,
}

/// All kept results, the most recently used last.
pub(super) struct Cache {
    entries: Vec<Entry>,
    limit: usize,
    next_id: u64,
}

impl Cache {
    pub fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), limit, next_id: 0 }
    }

    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The result of a key, made by a model of this version or, with `None`, of any: then the newest.
    pub fn find(&mut self, key: &Key, version: Option<u64>) -> Option<Id> {
        let is_it = |entry: &Entry| {
            let is_whole = !matches!(&entry.item, Item::Chain(chain) if chain.n_dropped > 0);
            is_whole && version.is_none_or(|version| entry.version == version) && entry.key == *key
        };
        let at = self.entries.iter().rposition(is_it)?;
        let entry = self.entries.remove(at);
        let id = entry.id;
        self.entries.push(entry);
        Some(id)
    }

    /// Keeps a result.
    pub fn insert(&mut self, key: Key, version: u64, item: Item) -> Id {
        let id = Id(self.next_id);
        self.next_id += 1;
        self.entries.push(Entry { id, key, version, item });
        id
    }

    /// A kept result.
    pub fn item(&self, id: Id) -> Option<&Item> {
        self.entries.iter().find(|entry| entry.id == id).map(|entry| &entry.item)
    }

    /// A kept chain.
    pub fn chain(&mut self, id: Id) -> Option<&mut KeptChain> {
        self.entries.iter_mut().find(|entry| entry.id == id).and_then(|entry| match &mut entry.item {
            Item::Chain(chain) => Some(&mut **chain),
            Item::Cell(_) | Item::BigStep(_) => None,
        })
    }

    /// Forgets what lives on a device that has failed.
    pub fn put_to_sleep(&mut self) {
        for entry in &mut self.entries {
            if let Item::Chain(chain) = &mut entry.item {
                chain.put_to_sleep();
            }
        }
    }

    fn used(&self) -> usize {
        self.entries.iter().map(|entry| entry.item.n_bytes()).sum()
    }

    /// Drops results until the limit is kept: the oldest first, of those `in_use` only steps that have been shown.
    pub fn trim(&mut self, in_use: &[Id]) -> Vec<ChainRequest> {
        let mut dropped = Vec::new();
        let mut used = self.used();
        let is_free = |entry: &Entry| !in_use.contains(&entry.id);
        // A chain without its beginning cannot be shown again.
        let is_torn = |entry: &Entry| matches!(&entry.item, Item::Chain(chain) if chain.n_dropped > 0);
        loop {
            let torn = self.entries.iter().position(|entry| is_free(entry) && is_torn(entry));
            let over = || (used > self.limit).then(|| self.entries.iter().position(is_free)).flatten();
            let Some(at) = torn.or_else(over) else { break };
            let entry = self.entries.remove(at);
            used -= entry.item.n_bytes();
            if let Key::Chain(request) = entry.key {
                dropped.push(Arc::unwrap_or_clone(request));
            }
        }
        for entry in &mut self.entries {
            let Item::Chain(chain) = &mut entry.item else { continue };
            while used > self.limit {
                let before = chain.n_bytes();
                if !chain.drop_first() {
                    break;
                }
                used -= before - chain.n_bytes();
            }
        }
        dropped
    }

    /// What is kept, for those who show it.
    pub fn memory(&self, dropped: Vec<ChainRequest>) -> Memory {
        Memory { used: self.used(), limit: self.limit, n_kept: self.entries.len(), dropped }
    }
}
