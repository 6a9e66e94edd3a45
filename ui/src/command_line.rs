//! What the window shows as a line for the command line, which makes the same pictures, or captions.
//!
//! The flags are those of `bit-diffusion sample` and `bit-diffusion caption`; the desktop's tests run such lines.

use bit_diffusion::{
    engine::{CaptionPictures, CaptionRequest, ChainRequest, Classes, ModelId, ModelInfo},
    model::Method,
};

/// The most pixels that the command line works on at once, over all pictures of a batch: memory grows with them.
const MAX_BATCH_PIXELS: usize = 1 << 16;

/// How many pictures of a size the command line works on at once. Past them it makes batches, each with noise of its own.
#[must_use]
pub fn batch_size(size: usize) -> usize {
    (MAX_BATCH_PIXELS / (size * size)).clamp(1, 256)
}

/// The line that makes the pictures of a chain and writes them to the file `out`. `name` is that of an opened model's file.
///
/// # Errors
/// In a few words, why no line would make the same.
pub fn command_line(request: &ChainRequest, info: &ModelInfo, name: &str, out: &str) -> Result<String, &'static str> {
    let model = match request.model {
        ModelId::Demo(demo) => demo.label().to_owned(),
        ModelId::Opened(_) => quoted(name),
        ModelId::Perfect(_) => return Err("the command line samples networks only, not the perfect denoiser"),
        ModelId::Training => return Err("save the network in training as a file first, and open that"),
    };
    if request.branch.is_some() {
        return Err("the command line makes chains from noise only, not branches");
    }
    if request.n > batch_size(info.size) {
        return Err("the command line would make so many pictures in several batches; ask for fewer");
    }
    let settings = &request.settings;
    let line = format!(
        "bit-diffusion sample {model} --steps {} --sampler {} --td {} --self-cond {} --n {} --seed {}",
        settings.n_steps,
        settings.sampler.label().to_ascii_lowercase(),
        settings.td,
        settings.self_cond,
        request.n,
        request.seed,
    );
    let (mut class, mut guidance) = (String::new(), String::new());
    if info.n_classes > 0 {
        match request.classes {
            Classes::Each => {}
            Classes::One(one) => class = format!(" --class {one}"),
            Classes::Any => return Err("the command line always asks for a class; choose one here, or each in turn"),
        }
        #[expect(clippy::float_cmp, reason = "exactly 1 is no guidance, for the command line too")]
        if settings.guidance != 1.0 {
            guidance = format!(" --guidance {}", settings.guidance);
        }
    }
    Ok(line + &class + &guidance + " --out " + out)
}

/// The line that writes the captions of a request; `name` is that of the captioner, or of its file.
///
/// # Errors
/// In a few words, why no line would make the same.
pub fn caption_line(request: &CaptionRequest, method: Method, name: &str) -> Result<String, &'static str> {
    let CaptionPictures::File { name: picture, .. } = &request.pictures else {
        return Err("the command line captions picture files: open one of your own");
    };
    let line = format!("bit-diffusion caption {} {}", quoted(name), quoted(picture));
    let settings = &request.settings;
    Ok(match method {
        Method::Autoregressive => line,
        Method::BitDiffusion => format!(
            "{line} --steps {} --td {} --sampler {} --self-cond {} --seed {}",
            settings.n_steps,
            settings.td,
            settings.sampler.label().to_ascii_lowercase(),
            settings.self_cond,
            request.seed,
        ),
    })
}

/// A file's name as shells understand it.
fn quoted(name: &str) -> String {
    // A leading dash would be taken for a flag.
    let name = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if !name.is_empty() && name.chars().all(is_plain) {
        name
    } else if name.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", name.replace('\'', r"'\''"))
    } else {
        // The shell of Windows knows no other quotes.
        format!("\"{name}\"")
    }
}

#[cfg(test)]
mod tests {
    use bit_diffusion::{
        bits::{Codec, Encoding},
        engine::{Measure, Perfect},
        sampler::{Sampler, Settings},
        schedule::Schedule,
        self_cond::SelfCond,
    };

    use super::*;

    #[test]
    fn every_setting_has_its_flag() {
        let info = ModelInfo { n_classes: 10, ..shapes() };
        let settings = Settings {
            n_steps: 8,
            td: 2.5,
            sampler: Sampler::DpmSolverMultistep2,
            self_cond: SelfCond::Momentum { momentum: 0.1 },
            guidance: 1.5,
            ..Settings::default()
        };
        let request = ChainRequest { settings, n: 4, seed: 9, classes: Classes::One(3), ..ChainRequest::default() };
        assert_eq!(
            command_line(&request, &info, "", "sheet.png").unwrap(),
            "bit-diffusion sample shapes-uint8 --steps 8 --sampler dpm-solver-2m --td 2.5 --self-cond momentum=0.1 --n 4 --seed 9 \
             --class 3 --guidance 1.5 --out sheet.png"
        );
        let request = ChainRequest { classes: Classes::Any, ..request };
        assert!(command_line(&request, &info, "", "sheet.png").is_err());
        // A model without classes takes neither flag.
        let line = command_line(&request, &shapes(), "", "sheet.png").unwrap();
        assert!(line.ends_with("--seed 9 --out sheet.png"), "{line}");
    }

    #[test]
    fn what_the_command_line_cannot_make_is_refused() {
        let (info, plain) = (shapes(), ChainRequest::default());
        let refused = |request: &ChainRequest| command_line(request, &info, "", "a.png").is_err();
        assert!(!refused(&plain));
        assert!(refused(&plain.branched(3, plain.settings)));
        for model in [ModelId::Perfect(Perfect::default()), ModelId::Training] {
            assert!(refused(&ChainRequest { model, ..plain.clone() }));
        }
        assert!(!refused(&ChainRequest { n: 256, ..plain.clone() }) && refused(&ChainRequest { n: 257, ..plain }));
    }

    #[test]
    fn captions_of_files_have_a_line() {
        let settings = Settings { n_steps: 5, td: 2.5, ..Settings::default() };
        let request = CaptionRequest {
            model: ModelId::Opened(0),
            pictures: CaptionPictures::File { name: "my cat.jpg".to_owned(), bytes: [].into() },
            seed: 7,
            settings,
            beam: 1,
        };
        assert_eq!(
            caption_line(&request, Method::BitDiffusion, "mine.safetensors").unwrap(),
            "bit-diffusion caption mine.safetensors \"my cat.jpg\" --steps 5 --td 2.5 --sampler ddim --self-cond previous --seed 7"
        );
        let line = caption_line(&request, Method::Autoregressive, "shapes-captions-ar").unwrap();
        assert_eq!(line, "bit-diffusion caption shapes-captions-ar \"my cat.jpg\"");
        let scenes = CaptionRequest { pictures: CaptionPictures::Shapes { n: 1, seed: 0 }, ..request };
        assert!(caption_line(&scenes, Method::BitDiffusion, "shapes-captions").is_err());
    }

    #[test]
    fn file_names_survive_a_shell() {
        assert_eq!(quoted("mine.safetensors"), "mine.safetensors");
        assert_eq!(quoted("my model.safetensors"), "\"my model.safetensors\"");
        assert_eq!(quoted("$HOME's"), r"'$HOME'\''s'");
        assert_eq!(quoted("-x"), "./-x");
    }

    fn shapes() -> ModelInfo {
        ModelInfo {
            name: "shapes".to_owned(),
            size: 16,
            channels: 3,
            codec: Codec::pixels(Encoding::Uint8),
            n_classes: 0,
            n_parameters: 1,
            schedule: Schedule::default(),
            measure: Measure::Shapes,
        }
    }
}
