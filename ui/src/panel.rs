//! The names of the panels: on their tabs, in links and in kept settings.

/// One view of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// The reverse chain on pictures.
    Chain,
    /// What the clock says against where the state is.
    TimeDifference,
    /// Analog bits and encodings.
    Bits,
    /// The four ways of self-conditioning.
    SelfCond,
    /// One bit in one dimension.
    Toy,
    /// Captions of pictures: words as bits.
    Captions,
    /// Training a network.
    Train,
}

impl Panel {
    /// Every panel, in the order of their tabs.
    pub const ALL: [Self; 7] =
        [Self::Chain, Self::TimeDifference, Self::Bits, Self::SelfCond, Self::Toy, Self::Captions, Self::Train];

    /// The text on the tab.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Chain => "Noise to pictures",
            Self::TimeDifference => "Time difference",
            Self::Bits => "Bits",
            Self::SelfCond => "Self-conditioning",
            Self::Toy => "One bit",
            Self::Captions => "Captions",
            Self::Train => "Train",
        }
    }

    /// The name in a command line, a link and kept settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::TimeDifference => "time-difference",
            Self::Bits => "bits",
            Self::SelfCond => "self-conditioning",
            Self::Toy => "one-bit",
            Self::Captions => "captions",
            Self::Train => "train",
        }
    }
}

/// A panel by its [`Panel::name`].
impl std::str::FromStr for Panel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|panel| panel.name() == text);
        found.ok_or_else(|| format!("the panels are {}", Self::ALL.map(Self::name).join(", ")))
    }
}
