//! The address of what is shown: the model, the panel and its settings as the query of a link, `panel=chain&seed=3&steps=60`.
//!
//! Whoever follows the link sees the same picture. A value that is missing or makes no sense is left as it is. Deliberately absent: files
//! that were opened, which are nobody else's, and what does not change a picture.

use bit_diffusion::{
    bits::Encoding,
    demo::Demo,
    engine::{Classes, ModelId, Perfect},
    sampler::{Sampler, Settings},
    saved::Saved,
    self_cond::SelfCond,
};

use crate::Panel;

/// Numbers that some panels have: their name here and in the panel's settings.
const NUMBERS: [(&str, &str); 4] = [("p", "p"), ("start", "start"), ("momentum", "momentum"), ("weight", "weight")];

/// Whole numbers that some panels have, of the same name in the panel's settings.
const WHOLE: [&str; 2] = ["gallery", "picture"];

/// What an address says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Address {
    pub panel: Option<Panel>,
    pub model: Option<ModelId>,
    /// Settings of the panel, as it keeps them.
    pub settings: Saved,
}

/// The query for a panel with its kept settings.
pub(crate) fn write(panel: Panel, model: ModelId, saved: &Saved) -> String {
    let mut pairs = vec![("panel", panel.name().to_owned())];
    match model {
        ModelId::Demo(demo) => pairs.push(("model", demo.label().to_owned())),
        ModelId::Perfect(Perfect { n_scenes, encoding, trust }) => pairs.extend([
            ("model", "perfect".to_owned()),
            ("scenes", n_scenes.to_string()),
            ("encoding", name_of(encoding)),
            ("trust", trust.to_string()),
        ]),
        ModelId::Opened(_) | ModelId::Training => {}
    }
    if let Some(seed) = saved.value::<u64>("seed") {
        pairs.push(("seed", seed.to_string()));
    }
    if let Some(n) = saved.value::<usize>("n") {
        pairs.push(("samples", n.to_string()));
    }
    if let Some(demo) = saved.value::<Demo>("captioner") {
        pairs.push(("captioner", demo.label().to_owned()));
    }
    for name in WHOLE {
        pairs.extend(saved.value::<u64>(name).map(|number| (name, number.to_string())));
    }
    if let Some(settings) = saved.value::<Settings>("settings") {
        let Settings { n_steps, td, sampler, self_cond, guidance, .. } = settings;
        pairs.extend([
            ("steps", n_steps.to_string()),
            ("td", td.to_string()),
            ("sampler", sampler.label().to_ascii_lowercase()),
            ("strategy", self_cond.to_string()),
        ]);
        #[expect(clippy::float_cmp, reason = "exactly 1 is no guidance")]
        if guidance != 1.0 {
            pairs.push(("guidance", guidance.to_string()));
        }
    }
    match saved.value::<Classes>("classes") {
        Some(Classes::Any) => pairs.push(("class", "any".to_owned())),
        Some(Classes::One(class)) => pairs.push(("class", class.to_string())),
        Some(Classes::Each) | None => {}
    }
    for (name, kept) in NUMBERS {
        pairs.extend(saved.value::<f64>(kept).map(|number| (name, number.to_string())));
    }
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// What a query says, as far as it makes sense; with or without its question mark.
pub(crate) fn read(query: &str) -> Address {
    let mut address = Address::default();
    let (mut perfect, mut is_perfect) = (Perfect::default(), false);
    let (mut saved, mut settings) = (Saved::default(), Saved::default());
    let pairs = query.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('='));
    for (name, value) in pairs {
        let Some(value) = decoded(value) else { continue };
        let number = || value.parse::<f64>().ok();
        match name {
            "panel" => address.panel = value.parse().ok().or(address.panel),
            "model" => {
                is_perfect = value == "perfect";
                address.model = value.parse().ok().map(ModelId::Demo);
            }
            "scenes" => perfect.n_scenes = value.parse().unwrap_or(perfect.n_scenes),
            "encoding" => {
                let found = Encoding::ALL.into_iter().find(|encoding| name_of(*encoding) == value);
                perfect.encoding = found.unwrap_or(perfect.encoding);
            }
            "trust" => perfect.trust = number().unwrap_or(perfect.trust),
            "seed" => saved.put_some("seed", value.parse::<u64>().ok()),
            "captioner" => saved.put_some("captioner", value.parse::<Demo>().ok()),
            "samples" => saved.put_some("n", value.parse::<usize>().ok()),
            "steps" => settings.put_some("n_steps", value.parse::<usize>().ok()),
            "td" => settings.put_some("td", number()),
            "sampler" => settings.put_some("sampler", value.parse::<Sampler>().ok()),
            "strategy" => settings.put_some("self_cond", value.parse::<SelfCond>().ok()),
            "guidance" => settings.put_some("guidance", number()),
            name if WHOLE.contains(&name) => saved.put_some(name, value.parse::<u64>().ok()),
            "class" if value == "any" => saved.put("classes", &Classes::Any),
            "class" => saved.put_some("classes", value.parse().ok().map(Classes::One)),
            _ => {
                if let Some((_, kept)) = NUMBERS.into_iter().find(|(known, _)| *known == name) {
                    saved.put_some(kept, number());
                }
            }
        }
    }
    if is_perfect {
        address.model = Some(ModelId::Perfect(perfect));
    }
    if settings != Saved::default() {
        saved.put("settings", &settings);
    }
    address.settings = saved;
    address
}

fn name_of(encoding: Encoding) -> String {
    format!("{encoding:?}").to_lowercase()
}

/// A value without its escapes, `%3D` and the like; some programs write `=` that way.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let settings = Settings {
            n_steps: 12,
            td: 0.1,
            sampler: Sampler::DpmSolverMultistep2,
            self_cond: SelfCond::Momentum { momentum: 0.25 },
            guidance: 2.5,
            ..Settings::default()
        };
        let mut saved = Saved::default();
        saved.put("settings", &settings);
        saved.put("seed", &u64::MAX);
        saved.put("n", &9);
        saved.put("classes", &Classes::One(3));
        saved.put("captioner", &Demo::CocoSmall);
        let query = write(Panel::SelfCond, ModelId::Demo(Demo::ShapesGray), &saved);
        assert!(query.starts_with("panel=self-conditioning&model=shapes-gray&seed=18446744073709551615"), "{query}");
        for query in [query.clone(), format!("?{query}"), query.replace("momentum=", "momentum%3D")] {
            let read = read(&query);
            assert_eq!((read.panel, read.model), (Some(Panel::SelfCond), Some(ModelId::Demo(Demo::ShapesGray))));
            assert_eq!(read.settings.value::<u64>("seed"), Some(u64::MAX));
            assert_eq!(read.settings.value::<Classes>("classes"), Some(Classes::One(3)));
            assert_eq!(read.settings.value::<Demo>("captioner"), Some(Demo::CocoSmall));
            let of = read.settings.part("settings");
            assert_eq!(of.value::<f64>("td"), Some(0.1));
            assert_eq!(of.value::<Sampler>("sampler"), Some(settings.sampler));
            assert_eq!(of.value::<SelfCond>("self_cond"), Some(settings.self_cond));
        }
        let perfect = ModelId::Perfect(Perfect { n_scenes: 7, encoding: Encoding::Gray, trust: 0.002 });
        assert_eq!(read(&write(Panel::Chain, perfect, &Saved::default())).model, Some(perfect));
    }

    #[test]
    fn nonsense_says_nothing() {
        for query in [
            "",
            "?",
            "&&=&",
            "panel=kitchen&model=../../etc&seed=-1&steps=many&td=NaN%&sampler=euler&strategy=momentum=9&class=x&samples=1e9&captioner=parrot",
            "seed=%&steps=%zz&td=%f0%9f",
            "roses=red",
        ] {
            assert_eq!(read(query), Address::default(), "{query}");
        }
    }
}
