//! `bit-diffusion train`: a training run in a folder of its own.
//!
//! The folder holds `checkpoint.safetensors` (to go on from), `model.safetensors` (to sample from), `config.json`, `log.csv` and the
//! sheets in `samples/`. Deliberately absent: the training itself, which is the core's.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use bit_diffusion::{
    checkpoint::{self, CheckpointError, Precision},
    device,
    model::{CaptionerConfig, UNetConfig},
    sampler::Settings,
    train::{CaptionData, Event, Kind, Network, NetworkConfig, Plan, Run, TrainConfig, Trainer},
};
use clap::error::ErrorKind;

use crate::{
    captions,
    cli::{TrainArguments, refuse},
    data::{self, Split},
    files::{self, AnyConfig, CHECKPOINT, CONFIG, MODEL},
    log::Log,
    progress::Reporter,
    save::write_atomically,
    sheet,
};

/// The samples of a sheet.
const SHEET_SIZE: usize = 16;

/// Trains as the flags say.
pub(crate) fn run(arguments: &TrainArguments) -> Result<()> {
    let stop = stop_on_ctrl_c()?;
    // What can be refused is, before the device is opened and anything is written.
    let bytes = if arguments.resume { Some(read_checkpoint(&arguments.out)?) } else { None };
    let kind = match &bytes {
        Some(bytes) => Some(checkpoint::kind(bytes).with_context(|| files::in_file(&arguments.out.join(CHECKPOINT)))?),
        None => None,
    };
    let requested = arguments
        .config
        .as_deref()
        .map(|name| files::read_config(name, &arguments.captions, arguments.data.as_deref()))
        .transpose()?;
    let (requested, meant) = requested.map_or((None, None), |(config, n_steps)| (Some(config), n_steps));
    let kind = kind.or(requested.as_ref().map(AnyConfig::kind));
    match (kind, requested) {
        (Some(Kind::Pictures), None) => start::<UNetConfig>(arguments, bytes, None, meant, &stop),
        (Some(Kind::Pictures), Some(AnyConfig::Pictures(config))) => {
            start(arguments, bytes, Some(*config), meant, &stop)
        }
        (Some(Kind::Captions), None) => start::<CaptionerConfig>(arguments, bytes, None, meant, &stop),
        (Some(Kind::Captions), Some(AnyConfig::Captions(config))) => {
            start(arguments, bytes, Some(*config), meant, &stop)
        }
        (Some(kind), Some(_)) => bail!(
            "the run in {} is one of {}, the settings are not; leave them out to go on with the run's own",
            arguments.out.display(),
            kind.label()
        ),
        (None, _) => refuse(ErrorKind::MissingRequiredArgument, "say what to train, or --resume"),
    }
}

/// Starts a run of one kind of network, or goes on with the one of which there are `bytes`.
fn start<C: Trained>(
    arguments: &TrainArguments,
    bytes: Option<Vec<u8>>,
    requested: Option<TrainConfig<C>>,
    meant: Option<usize>,
    stop: &AtomicBool,
) -> Result<()> {
    let folder = &arguments.out;
    let deadline = arguments.minutes.map(deadline);
    let mut config = match (&bytes, requested) {
        (Some(bytes), requested) => {
            let kept = C::settings_of(bytes).with_context(|| files::in_file(&folder.join(CHECKPOINT)))?;
            resumed_config(arguments, &kept, requested)?
        }
        (None, Some(config)) => {
            refuse_existing(folder)?;
            with_flags(config, arguments)
        }
        (None, None) => refuse(ErrorKind::MissingRequiredArgument, "say what to train, or --resume"),
    };
    config.validate()?;
    let Some(n_steps) = arguments.steps.or(meant) else {
        refuse(ErrorKind::MissingRequiredArgument, "say how many steps to train, with --steps")
    };
    let mut data = C::open_data(arguments, &config)?;
    C::data_name(&data).clone_into(&mut config.data);

    let opened = pollster::block_on(device::open(&arguments.device))?;
    eprintln!("device: {}", opened.description);
    let trainer = match bytes {
        Some(bytes) => {
            let loaded = checkpoint::load_trainer(&bytes, &opened.device);
            let mut trainer = loaded.with_context(|| files::in_file(&folder.join(CHECKPOINT)))?;
            trainer.retune(config)?;
            trainer
        }
        None => Trainer::new(config, &opened.device)?,
    };
    if trainer.n_steps() >= n_steps {
        eprintln!("the run has made {} steps already; to go on, give a larger --steps", trainer.n_steps());
        return Ok(());
    }
    let plan = Plan {
        n_steps,
        save_every: arguments.save_every,
        sheet_every: arguments.sheet_every,
        sheet_size: SHEET_SIZE,
        sheet: Settings {
            n_steps: C::SHEET_STEPS,
            td: C::SHEET_TD,
            schedule: trainer.config().schedule,
            ..Settings::default()
        },
    };
    let mut files = RunFolder::open(folder, &trainer)?;
    let mut run = Run::new(trainer, plan, &opened.device)?;
    let mut reporter = Reporter::new(n_steps, run.trainer().n_steps());
    let trained = train(&mut run, data.as_mut(), &mut files, deadline, stop, &mut reporter);
    reporter.finish();
    trained.with_context(|| format!("the checkpoint of step {} is kept in {}", files.n_saved, folder.display()))
}

/// What a kind of network needs around its training: its data, and its sheets as files.
pub(crate) trait Trained: NetworkConfig {
    /// The steps of a sheet's chain.
    const SHEET_STEPS: usize;

    /// Its time difference, in steps.
    const SHEET_TD: f64;

    /// The settings of a run that is kept.
    fn settings_of(bytes: &[u8]) -> Result<TrainConfig<Self>, CheckpointError>;

    /// The data, once they fit the network.
    fn open_data(arguments: &TrainArguments, config: &TrainConfig<Self>) -> Result<Box<Data<Self>>>;

    /// The name of the data.
    fn data_name(data: &Data<Self>) -> &'static str;

    /// The ending of a sheet's file, and its bytes.
    fn sheet(config: &TrainConfig<Self>, data: &mut Data<Self>, values: Vec<u32>) -> Result<(&'static str, Vec<u8>)>;
}

/// What the examples of a kind of network come from.
pub(crate) type Data<C> = <<C as NetworkConfig>::Network as Network>::Data;

impl Trained for UNetConfig {
    const SHEET_STEPS: usize = 50;
    const SHEET_TD: f64 = 0.0;

    fn settings_of(bytes: &[u8]) -> Result<TrainConfig, CheckpointError> {
        checkpoint::inspect(bytes).map(|header| header.config)
    }

    fn open_data(arguments: &TrainArguments, config: &TrainConfig) -> Result<Box<Data<Self>>> {
        let network = &config.network;
        let pictures = data::open(arguments.data.as_deref(), Split::Train, network.size, network.channels)?;
        if network.n_classes > 0 && !(1..=network.n_classes).contains(&pictures.n_classes()) {
            bail!(
                "the network knows {} classes, the data have {}; choose other data with --data, or a preset without classes",
                network.n_classes,
                pictures.n_classes()
            );
        }
        Ok(pictures)
    }

    fn data_name(data: &Data<Self>) -> &'static str {
        data.name()
    }

    fn sheet(config: &TrainConfig, _: &mut Data<Self>, values: Vec<u32>) -> Result<(&'static str, Vec<u8>)> {
        let UNetConfig { channels, size, alphabet, .. } = config.network;
        Ok(("png", sheet::Pictures { channels, size, alphabet, values }.png()?))
    }
}

impl Trained for CaptionerConfig {
    const SHEET_STEPS: usize = 10;
    const SHEET_TD: f64 = 5.0;

    fn settings_of(bytes: &[u8]) -> Result<TrainConfig<Self>, CheckpointError> {
        checkpoint::inspect_captioner(bytes).map(|header| header.config)
    }

    fn open_data(arguments: &TrainArguments, config: &TrainConfig<Self>) -> Result<Box<CaptionData>> {
        Ok(Box::new(captions::open(&arguments.captions, arguments.data.as_deref(), Split::Train, &config.network)?))
    }

    fn data_name(data: &CaptionData) -> &'static str {
        data.pictures.name()
    }

    /// A line for each picture: what it was captioned, and a caption of the data.
    fn sheet(config: &TrainConfig<Self>, data: &mut CaptionData, values: Vec<u32>) -> Result<(&'static str, Vec<u8>)> {
        let mut text = String::from("caption\tcaption of the data\n");
        for (i, tokens) in values.chunks_exact(config.network.length).enumerate() {
            let (_, captions) = data.read(&config.network, i)?;
            let truth = captions.first().map_or("", String::as_str);
            writeln!(text, "{}\t{truth}", data.tokenizer.decode(tokens)?)?;
        }
        Ok(("txt", text.into_bytes()))
    }
}

/// Follows the run's events until it is done, stopped, or out of time.
fn train<C: Trained>(
    run: &mut Run<C>,
    data: &mut Data<C>,
    files: &mut RunFolder,
    deadline: Option<Instant>,
    stop: &AtomicBool,
    reporter: &mut Reporter,
) -> Result<()> {
    let mut loss = Smoothed::default();
    loop {
        let is_stopped = stop.load(Ordering::Relaxed);
        if is_stopped || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let bytes = pollster::block_on(checkpoint::save_trainer(run.trainer()))?;
            files.save(run.trainer(), &bytes)?;
            let why = if is_stopped { "stopped and" } else { "time is up," };
            reporter.say(&format!("{why} saved at step {}; go on with --resume", files.n_saved));
            return Ok(());
        }
        match pollster::block_on(run.next(data))? {
            Some(Event::Step(progress)) => {
                files.log.row(&progress)?;
                loss.add(f64::from(progress.loss));
                reporter.step(progress.n_steps, &format!("loss {:.5}", loss.value()));
            }
            Some(Event::Checkpoint(bytes)) => files.save(run.trainer(), &bytes)?,
            Some(Event::Sampling { .. }) => {}
            Some(Event::Sheet(values)) => {
                let path = files.sheet(run.trainer(), data, values)?;
                reporter.say(&format!("step {}: {}", run.trainer().n_steps(), path.display()));
            }
            None => {
                reporter.say(&format!("done: {} steps, in {}", files.n_saved, files.folder.display()));
                return Ok(());
            }
        }
    }
}

/// The folder of a run.
struct RunFolder {
    folder: PathBuf,
    log: Log,
    /// The step of the checkpoint on disk.
    n_saved: usize,
}

impl RunFolder {
    /// Prepares the folder; a fresh run is saved at once, so that a disk that cannot be written shows now.
    fn open<C: Trained>(folder: &Path, trainer: &Trainer<C>) -> Result<Self> {
        let samples = folder.join("samples");
        fs::create_dir_all(&samples).with_context(|| format!("cannot make the folder {}", samples.display()))?;
        let n_steps = trainer.n_steps();
        let log = Log::open(&folder.join("log.csv"), n_steps)?;
        write_atomically(&folder.join(CONFIG), files::config_text(trainer.config())?.as_bytes())?;
        let mut files = Self { folder: folder.to_owned(), log, n_saved: n_steps };
        if !folder.join(CHECKPOINT).exists() {
            files.save(trainer, &pollster::block_on(checkpoint::save_trainer(trainer))?)?;
        }
        Ok(files)
    }

    /// Writes a checkpoint, and beside it the averaged network, for sampling.
    fn save<C: Trained>(&mut self, trainer: &Trainer<C>, bytes: &[u8]) -> Result<()> {
        // First the log: lines too many are cut off when the run goes on, lines too few would be missing for ever.
        self.log.flush()?;
        write_atomically(&self.folder.join(CHECKPOINT), bytes)?;
        self.n_saved = trainer.n_steps();
        let bytes = pollster::block_on(checkpoint::export(trainer, Precision::F16))?;
        write_atomically(&self.folder.join(MODEL), &bytes)
    }

    /// Writes a sheet of samples, named by the step.
    fn sheet<C: Trained>(&self, trainer: &Trainer<C>, data: &mut Data<C>, values: Vec<u32>) -> Result<PathBuf> {
        let (extension, bytes) = C::sheet(trainer.config(), data, values)?;
        let path = self.folder.join("samples").join(format!("{:06}.{extension}", trainer.n_steps()));
        write_atomically(&path, &bytes)?;
        Ok(path)
    }
}

/// A mean that forgets: the last hundred steps or so.
#[derive(Default)]
struct Smoothed {
    sum: f64,
    weight: f64,
}

impl Smoothed {
    const KEEP: f64 = 0.99;

    fn add(&mut self, value: f64) {
        self.sum = Self::KEEP * self.sum + value;
        self.weight = Self::KEEP * self.weight + 1.0;
    }

    fn value(&self) -> f64 {
        self.sum / self.weight
    }
}

fn read_checkpoint(folder: &Path) -> Result<Vec<u8>> {
    let path = folder.join(CHECKPOINT);
    fs::read(&path)
        .with_context(|| format!("there is no run to go on with; start one without --resume: {}", path.display()))
}

fn refuse_existing(folder: &Path) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => bail!(
            "this folder is not empty; go on with the run in it by --resume, or choose another one with --out: {}",
            folder.display()
        ),
        Ok(false) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot use {} as the folder of a run", folder.display())),
    }
}

/// Settings with those replaced that have a flag of their own.
fn with_flags<C>(mut config: TrainConfig<C>, arguments: &TrainArguments) -> TrainConfig<C> {
    config.seed = arguments.seed.unwrap_or(config.seed);
    config.learning_rate = arguments.learning_rate.unwrap_or(config.learning_rate);
    if let Some(batch_size) = arguments.batch_size {
        config.batch_size = batch_size;
        config.micro_batch_size = config.micro_batch_size.min(batch_size);
    }
    config.micro_batch_size = arguments.micro_batch.unwrap_or(config.micro_batch_size);
    config
}

/// The settings to go on with: those of the run, with the flags of this call; a preset or file must agree with them.
fn resumed_config<C: NetworkConfig>(
    arguments: &TrainArguments,
    kept: &TrainConfig<C>,
    requested: Option<TrainConfig<C>>,
) -> Result<TrainConfig<C>> {
    if let Some(mut requested) = requested {
        // What is learned from, --data says.
        requested.data.clone_from(&kept.data);
        // A flag is a change on purpose, a different preset is a mistake.
        let differences = differences(&with_flags(kept.clone(), arguments), &with_flags(requested, arguments))?;
        if !differences.is_empty() {
            bail!(
                "the run in {} has other settings than {}: {}; leave that out to go on with the run's own settings",
                arguments.out.display(),
                arguments.config.as_deref().unwrap_or_default(),
                differences.join(", ")
            );
        }
    }
    let config = with_flags(kept.clone(), arguments);
    if config.seed != kept.seed {
        bail!("the run has seed {}, which cannot change; leave --seed out, or start another run", kept.seed);
    }
    for difference in differences(kept, &config)? {
        eprintln!("changed: {difference}");
    }
    Ok(config)
}

/// What differs between two settings: "name old → new".
fn differences<C: NetworkConfig>(old: &TrainConfig<C>, new: &TrainConfig<C>) -> Result<Vec<String>> {
    fn compare(name: &str, old: &serde_json::Value, new: &serde_json::Value, found: &mut Vec<String>) {
        match (old.as_object(), new.as_object()) {
            (Some(a), Some(b)) if a.keys().eq(b.keys()) => {
                for (key, value) in a {
                    let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                    compare(&name, value, &b[key], found);
                }
            }
            _ if old == new => {}
            _ => {
                let change = format!("{name} {old} → {new}");
                // A vocabulary has thousands of words.
                let is_readable = change.len() <= 200;
                found.push(if is_readable { change } else { format!("{name}, another one") });
            }
        }
    }
    let mut found = Vec::new();
    compare("", &serde_json::to_value(old)?, &serde_json::to_value(new)?, &mut found);
    found.sort();
    Ok(found)
}

fn deadline(minutes: f64) -> Instant {
    let wait = Duration::try_from_secs_f64(minutes * 60.0).ok();
    let end = wait.and_then(|wait| Instant::now().checked_add(wait));
    end.unwrap_or_else(|| refuse(ErrorKind::InvalidValue, "--minutes must be a number, 0 or more"))
}

/// A flag that Ctrl-C raises; pressed again, it ends the program at once.
fn stop_on_ctrl_c() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("stopping after this step; press Ctrl-C again to stop at once, without saving");
    })
    .map_err(|error| anyhow!("cannot listen for Ctrl-C: {error}"))?;
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bit_diffusion::experiment::Preset;

    #[test]
    fn differences_are_named() {
        let old = Preset::ShapesUint8.config();
        let mut new = old.clone();
        assert_eq!(differences(&old, &new).unwrap(), Vec::<String>::new());
        new.batch_size = 7;
        new.network.width = 64;
        let found = differences(&old, &new).unwrap();
        assert_eq!(found, ["batch_size 32 → 7", "network.width 32 → 64"]);
    }

    #[test]
    fn a_mean_starts_at_the_first_value_and_forgets() {
        let mut mean = Smoothed::default();
        mean.add(3.0);
        assert!((mean.value() - 3.0).abs() < 1e-12);
        for _ in 0..2000 {
            mean.add(1.0);
        }
        assert!((mean.value() - 1.0).abs() < 1e-6);
    }
}
