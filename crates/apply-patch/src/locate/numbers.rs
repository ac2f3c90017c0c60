//! Numbers for the lines that a patch asks for.
//!
//! A large file has many lines and a patch asks for few of them, so most of
//! the time goes into finding out that a line of the file is none of those.

use std::borrow::Cow;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Marks a line of the file that no pattern asks for.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// The keys of the vocabulary, numbered in the order in which they first come.
///
/// They are hashed quickly, with a seed that the writer of a patch cannot know.
#[derive(Debug)]
pub(super) struct Numbers<'t> {
    keys: Vec<Cow<'t, [u8]>>,
    /// Where each key first stands in the vocabulary.
    first: Vec<u32>,
    table: HashTable<u32>,
    state: RandomState,
    inserted: u32,
}

impl<'t> Numbers<'t> {
    pub(super) fn for_lines(count: usize) -> Self {
        Self {
            keys: Vec::with_capacity(count),
            first: Vec::with_capacity(count),
            table: HashTable::with_capacity(count),
            state: RandomState::default(),
            inserted: 0,
        }
    }

    /// Adds the next line of the vocabulary.
    pub(super) fn insert(&mut self, key: Cow<'t, [u8]>) -> u32 {
        let Self {
            keys, table, state, ..
        } = self;
        let next = keys.len() as u32;
        let hash = state.hash_one(&*key);
        let same = |number: &u32| keys[*number as usize] == key;
        let number = match table.entry(hash, same, |it| state.hash_one(&*keys[*it as usize])) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                free.insert(next);
                keys.push(key);
                self.first.push(self.inserted);
                next
            }
        };
        self.inserted += 1;
        number
    }

    /// Returns how many different keys there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<u32> {
        let same = |number: &u32| self.is(*number, key);
        self.table.find(self.state.hash_one(key), same).copied()
    }

    fn is(&self, number: u32, key: &[u8]) -> bool {
        *self.keys[number as usize] == *key
    }
}

/// Gives the lines of the file their numbers.
///
/// Lines that follow each other in the patch mostly do so in the file, and a
/// comparison with the next one costs less than finding it.
pub(super) struct Reader<'n, 't> {
    numbers: &'n Numbers<'t>,
    asked: &'n [u32],
    /// Which line of the vocabulary is expected.
    next: usize,
}

impl<'n, 't> Reader<'n, 't> {
    pub(super) fn new(numbers: &'n Numbers<'t>, asked: &'n [u32]) -> Self {
        Self {
            numbers,
            asked,
            next: 0,
        }
    }

    pub(super) fn number(&mut self, key: &[u8]) -> u32 {
        let expected = self.asked.get(self.next);
        if let Some(number) = expected.filter(|number| self.numbers.is(**number, key)) {
            self.next += 1;
            return *number;
        }
        let Some(number) = self.numbers.get(key) else {
            return UNKNOWN;
        };
        self.next = self.numbers.first[number as usize] as usize + 1;
        number
    }
}

/// A small set that knows most lines of the file which no pattern asks for,
/// from their length and edges alone.
#[derive(Debug)]
pub(super) struct Sieve {
    /// A power of two of them.
    words: Vec<u64>,
}

impl Sieve {
    /// Sixteen bits for each line let one in sixteen others through.
    pub(super) fn for_lines(count: usize) -> Self {
        const MOST_WORDS: usize = 1 << 16;
        let words = (count / 4).clamp(64, MOST_WORDS).next_power_of_two();
        Self {
            words: vec![0; words],
        }
    }

    pub(super) fn insert(&mut self, key: &[u8]) {
        let (word, bit) = self.slot(key);
        self.words[word] |= bit;
    }

    pub(super) fn may_contain(&self, key: &[u8]) -> bool {
        let (word, bit) = self.slot(key);
        self.words[word] & bit != 0
    }

    fn slot(&self, key: &[u8]) -> (usize, u64) {
        let (head, tail) = match (key.first_chunk(), key.last_chunk()) {
            (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
            _ => (
                key.iter()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte)),
                0,
            ),
        };
        let mixed = head
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
            .wrapping_add(tail)
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .wrapping_add(key.len() as u64)
            .wrapping_mul(0xa076_1d64_78bd_642f);
        let word = (mixed >> 40) as usize & (self.words.len() - 1);
        (word, 1 << (mixed >> 34 & 63))
    }
}
