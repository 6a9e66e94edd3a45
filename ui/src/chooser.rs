//! The choice of the model, for all panels at once.

use bit_diffusion::{
    bits::Encoding,
    engine::{Measure, ModelId, ModelInfo, Perfect},
};
use egui::{ComboBox, DragValue, Ui};

use crate::session::Session;

/// The encodings whose pictures are quick to make: one-hot takes 32 times as many numbers.
const ENCODINGS: [Encoding; 4] = [Encoding::Uint8, Encoding::Gray, Encoding::Uint8Rand, Encoding::Continuous];

/// The list of models, and what a perfect denoiser can be told.
pub(crate) fn ui(ui: &mut Ui, session: &mut Session) {
    let mut chosen = session.model;
    let name_of = |session: &Session, id: ModelId| {
        session.models.iter().find(|model| model.id == id).map_or_else(String::new, |model| model.name.clone())
    };
    let text = name_of(session, chosen);
    let list = ComboBox::from_label("model").width(116.0).selected_text(text).show_ui(ui, |ui| {
        for model in &session.models {
            ui.selectable_value(&mut chosen, model.id, &model.name).on_hover_text(purpose(model.id));
        }
    });
    let mut hint = purpose(chosen).to_owned();
    if let Some(info) = &session.info {
        hint += "\n\n";
        hint += &described(info);
    }
    list.response.on_hover_text(hint + "\n\nOpen… and dropping a file on the window bring in others");
    if let ModelId::Perfect(perfect) = &mut chosen {
        perfect_ui(ui, perfect);
        // The list has one perfect denoiser: as it is now.
        if let Some(model) = session.models.iter_mut().find(|model| matches!(model.id, ModelId::Perfect(_)))
            && model.id != chosen
        {
            (model.id, model.info) = (chosen, None);
        }
    }
    session.choose(chosen);
}

fn perfect_ui(ui: &mut Ui, perfect: &mut Perfect) {
    ComboBox::from_label("encoding")
        .width(90.0)
        .selected_text(perfect.encoding.label())
        .show_ui(ui, |ui| {
            for encoding in ENCODINGS {
                ui.selectable_value(&mut perfect.encoding, encoding, encoding.label());
            }
        })
        .response
        .on_hover_text("How colour values from 0 to 255 are written as bits");
    let scenes = DragValue::new(&mut perfect.n_scenes).range(1..=Perfect::MAX_SCENES).suffix(" scenes");
    ui.add(scenes).on_hover_text("How many scenes it knows: its samples are these and no others");
    let trust = DragValue::new(&mut perfect.trust).range(0.0..=0.01).speed(0.0001).max_decimals(4).prefix("trust ");
    ui.add(trust).on_hover_text(
        "How much it lets its earlier guess count (β). A trained network learns this by itself; at 0 all ways of self-conditioning \
         are the same.",
    );
}

/// What a model is for.
fn purpose(model: ModelId) -> &'static str {
    match model {
        ModelId::Demo(_) => "A small network that comes with the program",
        ModelId::Perfect(_) => {
            "No network: the best guess there is, worked out from all scenes at once\n\nx_pred = Σ softmax(−‖x_t − √γ·x_i‖² / 2(1−γ))·x_i"
        }
        ModelId::Opened(_) => "A model from a file",
        ModelId::Training => "The network that is being trained, as it is when a chain starts",
    }
}

/// What the engine said of a model.
fn described(info: &ModelInfo) -> String {
    let ModelInfo { size, channels, n_classes, n_parameters, measure, .. } = info;
    let colours = if *channels == 1 { "grey" } else { "colour" };
    let mut parts = vec![format!("{size}×{size} {colours} pictures in {}", info.encoding().label())];
    if *n_classes > 0 {
        parts.push(format!("{n_classes} classes"));
    }
    if *n_parameters > 0 {
        parts.push(format!("{n_parameters} weights"));
    }
    if *measure == Measure::Shapes {
        parts.push("measured exactly".to_owned());
    }
    parts.join(", ")
}
