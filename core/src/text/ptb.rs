//! Words of a caption as the Penn Treebank has them: lower case, without punctuation, `don't` as `do` and `n't`.
//!
//! The scores of captions are defined on these words, and published ones were computed with Stanford's `PTBTokenizer` 3.4.1 (options
//! `-preserveLines -lowerCase`) as `pycocoevalcap` calls it, which then drops punctuation. This follows what that program does to
//! captions, oddities included: brackets stay, as `-lrb-`, and so does `!!`, because the list of dropped tokens has `-LRB-` and `!`.
//!
//! Deliberately absent: what no caption has, such as smileys, tags of HTML, and addresses with a query.

/// Abbreviations that keep their full stop, also at the end of a caption, where it may not have been meant so.
const ABBREVIATIONS: &[&str] = &[
    "adm", "al", "ala", "alex", "apr", "ariz", "assn", "atty", "attys", "aug", "ave", "bancorp", "bhd", "bldg", "blvd",
    "brig", "bros", "calif", "capt", "cf", "cie", "cmdr", "co", "col", "colo", "comdr", "conn", "corp", "cos", "cpl",
    "ct", "dak", "dec", "dept", "det", "dr", "drs", "ed.d", "esq", "est", "etc", "ext", "feb", "fla", "fri", "ft",
    "ga", "gen", "gov", "govs", "hon", "inc", "ind", "intl", "jan", "jos", "jr", "jul", "jun", "kan", "kans", "ky",
    "lieut", "lt", "ltd", "maj", "mar", "md", "messrs", "mfg", "mich", "minn", "mlle", "mme", "mo", "mon", "mont",
    "mr", "mrs", "ms", "mt", "natl", "neb", "nev", "non-u.s", "nov", "oct", "okla", "penn", "pfc", "ph", "ph.d", "plc",
    "ppty", "pres", "prof", "profs", "pte", "ptes", "pty", "pvt", "rd", "rep", "reps", "rev", "sen", "sens", "sep",
    "sept", "seq", "sgt", "spc", "sq", "sr", "st", "ste", "supt", "supts", "sys", "tel", "tenn", "thu", "thurs",
    "treas", "tue", "tues", "univ", "va", "vs", "vt", "wed", "wis", "wisc", "wm", "wyo",
];

/// Abbreviations only with a capital: else they are words.
const CAPITAL_ABBREVIATIONS: &[&str] = &["ark", "az", "del", "ill", "la", "mass", "miss", "ore", "pa", "tex", "wash"];

/// Abbreviations only before a number.
const NUMBER_ABBREVIATIONS: &[&str] = &["art", "ca", "fig", "figs", "no", "nos", "op", "pp", "prop"];

/// Words that are two: the first one's length and the whole.
const PAIRS: &[(usize, &str)] = &[(3, "cannot"), (3, "gonna"), (3, "gotta"), (3, "wanna"), (3, "gimme"), (3, "lemme")];

/// Endings that stand alone, after their apostrophe.
const CLITICS: &[&str] = &["ll", "re", "ve", "s", "d", "m"];

/// Words with an apostrophe inside.
const WITH_APOSTROPHE: &[&str] = &["ma'am", "c'mon", "ne'er", "e'er", "ev'ry", "hallowe'en", "qu'il", "s'mores"];

/// Words that begin a sentence, so that a letter's full stop before them ended one.
const SENTENCE_STARTS: &[&str] = &[
    "A",
    "About",
    "According",
    "Additionally",
    "After",
    "An",
    "As",
    "At",
    "But",
    "Earlier",
    "He",
    "Her",
    "Here",
    "However",
    "If",
    "In",
    "It",
    "Last",
    "Many",
    "More",
    "Now",
    "Once",
    "One",
    "Other",
    "Our",
    "She",
    "Since",
    "So",
    "Some",
    "Such",
    "That",
    "The",
    "Their",
    "Then",
    "There",
    "These",
    "They",
    "This",
    "We",
    "What",
    "When",
    "While",
    "Yet",
    "You",
];

/// The words of a text.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let characters: Vec<char> = plain(text).chars().collect();
    let mut scanner = Scanner { text: &characters, at: 0, words: Vec::new() };
    while scanner.at < characters.len() {
        scanner.step();
    }
    scanner.words
}

/// A text as the Treebank writes it: quotation marks and dashes in ASCII, fractions spelt out.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{2018}' | '\u{2019}' => out.push('\''),
            '\u{201C}' | '\u{201D}' => out.push('"'),
            '\u{2013}' | '\u{2014}' => out.push_str("--"),
            '\u{2026}' => out.push_str(" ... "),
            '\u{BC}' => out.push_str(" 1/4 "),
            '\u{BD}' => out.push_str(" 1/2 "),
            '\u{BE}' => out.push_str(" 3/4 "),
            '\u{A2}' => out.push_str(" cents "),
            '\u{A3}' => out.push('#'),
            '\u{20AC}' => out.push('$'),
            other => out.push(other),
        }
    }
    out
}

fn is_word(character: Option<char>) -> bool {
    // Accents may be characters of their own.
    character.is_some_and(|c| c.is_alphanumeric() || ('\u{300}'..'\u{370}').contains(&c))
}

fn is_letter(character: Option<char>) -> bool {
    is_word(character) && !is_digit(character)
}

fn is_digit(character: Option<char>) -> bool {
    character.is_some_and(|c| c.is_ascii_digit())
}

/// A place in a text, and the words before it.
struct Scanner<'a> {
    text: &'a [char],
    at: usize,
    words: Vec<String>,
}

impl Scanner<'_> {
    /// The character so many places on.
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    /// Whether a text of lower case follows, so many places on, and then no more of a word.
    fn follows(&self, ahead: usize, text: &str) -> bool {
        let n = text.chars().count();
        let same = text.chars().enumerate().all(|(i, c)| self.peek(ahead + i).is_some_and(|x| lower(x) == c));
        same && !is_word(self.peek(ahead + n))
    }

    /// How many characters are so, one after another, from so many places on.
    fn run(&self, ahead: usize, is_so: impl Fn(char) -> bool) -> usize {
        self.text.iter().skip(self.at + ahead).take_while(|&&c| is_so(c)).count()
    }

    /// Takes so many characters as a word; of none, nothing is made.
    fn take(&mut self, n: usize) {
        if n > 0 {
            self.words.push(self.text[self.at..self.at + n].iter().map(|&c| lower(c)).collect());
        }
        self.at += n;
    }

    /// Takes the next word, or passes over a character that belongs to none.
    fn step(&mut self) {
        let Some(first) = self.peek(0) else { return };
        let run = self.run(0, |c| c == first);
        let starts = self.at == 0 || !is_word(Some(self.text[self.at - 1])) && self.text[self.at - 1] != '-';
        match first {
            c if is_word(Some(c)) => self.word(),
            '\'' => self.apostrophe(),
            '.' | '-' | '+' if starts && run == 1 && is_digit(self.peek(1)) => self.take(1 + self.number_length(1)),
            '.' | ',' | ';' | ':' | '"' | '`' | '-' => self.at += 1,
            '!' | '?' => {
                let marks = self.run(0, |c| matches!(c, '!' | '?'));
                // Only a single one is on the list of what is dropped.
                if marks > 1 { self.take(marks) } else { self.at += 1 }
            }
            '(' => self.bracket("-lrb-"),
            ')' => self.bracket("-rrb-"),
            '[' => self.bracket("-lsb-"),
            ']' => self.bracket("-rsb-"),
            '{' => self.bracket("-lcb-"),
            '}' => self.bracket("-rcb-"),
            '#' | '@' if is_letter(self.peek(1)) => {
                let name = self.run(1, |c| is_word(Some(c)) || c == '_');
                self.take(1 + name);
            }
            '*' | '_' => self.take(run),
            c if c.is_whitespace() || c.is_control() => self.at += 1,
            // Nothing is known of emoji and of what has no width.
            c if c > '\u{FFFF}' || ('\u{200B}'..='\u{200F}').contains(&c) => self.at += 1,
            _ => self.take(1),
        }
    }

    fn bracket(&mut self, name: &str) {
        self.words.push(name.to_owned());
        self.at += 1;
    }

    /// The length of the number that begins so many places on: `1,000.50`, `10:30`.
    fn number_length(&self, ahead: usize) -> usize {
        let mut n = 0;
        while is_digit(self.peek(ahead + n))
            || n > 0 && matches!(self.peek(ahead + n), Some('.' | ',' | ':')) && is_digit(self.peek(ahead + n + 1))
        {
            n += 1;
        }
        n
    }

    /// What begins with an apostrophe: the end of a word before it, a word with something left out, or a quotation.
    fn apostrophe(&mut self) {
        let whole = ["em", "til", "cause", "n"];
        if self.peek(1) == Some('n') && self.peek(2) == Some('\'') {
            // rock 'n' roll
            self.take(3);
        } else if let Some(rest) = CLITICS.iter().chain(&whole).find(|rest| self.follows(1, rest)) {
            self.take(1 + rest.len());
        } else if self.follows(1, "tis") || self.follows(1, "twas") {
            self.take(2);
        } else if is_digit(self.peek(1)) && is_digit(self.peek(2)) && self.peek(3) != Some('\'') {
            // '90 or '90s
            let n = 3 + usize::from(self.peek(3) == Some('s'));
            if is_word(self.peek(n)) { self.at += 1 } else { self.take(n) }
        } else {
            self.at += 1;
        }
    }

    /// Takes a word and what belongs to it: its full stop, if it is an abbreviation, or the ending `n't`.
    fn word(&mut self) {
        let n = self.word_length();
        let word: String = self.text[self.at..self.at + n].iter().map(|&c| lower(c)).collect();
        if word.ends_with('n') && self.peek(n) == Some('\'') && self.peek(n + 1).is_some_and(|c| lower(c) == 't') {
            self.take(n - 1);
            let rest = self.run(3, |c| is_letter(Some(c)));
            self.take(3 + rest);
        } else if let Some((first, _)) = PAIRS.iter().find(|(_, pair)| *pair == word) {
            self.take(*first);
            self.take(n - first);
        } else if word == "y" && self.peek(1) == Some('\'') && is_letter(self.peek(2)) || self.follows(0, "ol'") {
            self.take(n + 1);
        } else {
            self.take(n + usize::from(self.peek(n) == Some('.') && self.keeps_stop(&word, n)));
        }
    }

    /// Whether a word of `n` characters keeps the full stop after it.
    fn keeps_stop(&self, word: &str, n: usize) -> bool {
        let is_initials = word.split('.').all(|part| part.len() == 1 && part.as_bytes()[0].is_ascii_alphabetic());
        let has_capital = self.peek(0).is_some_and(char::is_uppercase);
        let next = self.text[self.at + n + 1..].iter().find(|c| !c.is_whitespace()).copied();
        if word.len() == 1 && is_initials {
            return !self.ends_sentence(n + 1);
        }
        is_initials
            || ABBREVIATIONS.binary_search(&word).is_ok()
            || has_capital && CAPITAL_ABBREVIATIONS.contains(&word)
            || is_digit(next) && NUMBER_ABBREVIATIONS.contains(&word)
            // No sentence goes on with a comma, so that its word must be an abbreviation.
            || matches!(self.peek(n + 1), Some(',' | ';' | ':'))
    }

    /// Whether a sentence ends so many places on: the text does, or a word that begins one stands there.
    fn ends_sentence(&self, ahead: usize) -> bool {
        let rest = &self.text[self.at + ahead..];
        let spaces = rest.iter().take_while(|c| c.is_whitespace()).count();
        let next: String = rest[spaces..].iter().take_while(|c| c.is_alphanumeric()).collect();
        // Deviation: at the end of a caption Stanford's program looks at the next line; most begin like a sentence.
        spaces == rest.len() || spaces > 0 && SENTENCE_STARTS.contains(&next.as_str())
    }

    /// The length of the word here, with everything inside that does not divide it: `t-shirt`, `and/or`, `o'clock`, `3.5`, `AT&T`.
    fn word_length(&self) -> usize {
        for whole in WITH_APOSTROPHE {
            if self.follows(0, whole) {
                return whole.len();
            }
        }
        let mut n = 0;
        // Where the part after the last mark began.
        let mut part = 0;
        loop {
            while is_word(self.peek(n)) {
                n += 1;
            }
            let is_number = (part..n).all(|i| is_digit(self.peek(i)));
            let goes_on = match self.peek(n) {
                Some('-' | '_' | '/' | '@') => is_word(self.peek(n + 1)),
                Some('.' | ',' | ':') if is_number && is_digit(self.peek(n + 1)) => {
                    // After such a number letters are a word of their own: 10:30 am.
                    return part + self.number_length(part);
                }
                Some('.' | '!' | '?') => is_letter(self.peek(part)) && is_letter(self.peek(n + 1)),
                Some('&') => {
                    let capitals = |from: usize| self.run(from, |c| c.is_ascii_uppercase());
                    let after = capitals(n + 1);
                    if part == 0 && capitals(0) == n && after > 0 {
                        return n + 1 + after;
                    }
                    false
                }
                Some('\'') => {
                    let first = self.peek(part).map_or(' ', lower);
                    n == part + 1
                        && (part == 0 || self.peek(part - 1) == Some('-'))
                        && "dlo".contains(first)
                        && is_letter(self.peek(n + 1))
                        && is_letter(self.peek(n + 2))
                        && !CLITICS.iter().any(|clitic| self.follows(n + 1, clitic))
                }
                _ => false,
            };
            if !goes_on {
                return n;
            }
            n += 1;
            part = n;
        }
    }
}

fn lower(character: char) -> char {
    // The few letters whose lower case is two characters keep to the first.
    character.to_lowercase().next().unwrap_or(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Stanford's program makes of a text, words separated by spaces.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(words(text).join(" "), expected, "{text}");
    }

    #[test]
    fn lists_are_in_order() {
        assert!(ABBREVIATIONS.is_sorted());
    }

    #[test]
    fn punctuation_goes_and_case_too() {
        check("A man, a dog; and \"THE cat\"... 'all' - here!", "a man a dog and the cat all here");
        check("chicken,carrots and a .racquet", "chicken carrots and a racquet");
        check("“a” ‘b’ – c…", "a b c");
        check("", "");
        check(" . ", "");
    }

    #[test]
    fn what_is_odd_stays_odd() {
        check("a (red) dog [left]", "a -lrb- red -rrb- dog -lsb- left -rsb-");
        check("what?! wow! no!!", "what ?! wow no !!");
        check("shower/tub, people/", "shower/tub people /");
        check("dog., cat.", "dog. cat");
        check("a dog!A cat.The end", "a dog!a cat.the end");
    }

    #[test]
    fn endings_come_apart() {
        check("it's a dog's parents' bed", "it 's a dog 's parents bed");
        check("Don't, can't, I'll we've they'd I'm", "do n't ca n't i 'll we 've they 'd i 'm");
        check("a frisbee in't mouth", "a frisbee i n't mouth");
        check("cannot gonna 'tis y'all", "can not gon na 't is y' all");
        check("o'clock O'Brien ma'am rock'n'roll '90s 6'2", "o'clock o'brien ma'am rock 'n' roll '90s 6 2");
    }

    #[test]
    fn abbreviations_keep_their_stop() {
        check("Mr. Smith of Main St.", "mr. smith of main st.");
        check("La. la. no. 5 no.", "la. la no. 5 no");
        check("at 5 p.m. in the U.S.", "at 5 p.m. in the u.s.");
        check("George W. Bush. Vitamin C. The end. A Wii U.", "george w. bush vitamin c the end a wii u");
    }

    #[test]
    fn numbers_and_joined_words_stay_whole() {
        check("1,000.50 at 10:30am, $5 or 50% of #1", "1,000.50 at 10:30 am $ 5 or 50 % of # 1");
        check("a 3-way t-shirt -- M&Ms R&B a&b", "a 3-way t-shirt m&m s r&b a & b");
        check("-5 .5 10–15 a- b -c", "-5 .5 10 15 a b c");
        check("½ café 犬 🙂", "1/2 café 犬");
    }
}
