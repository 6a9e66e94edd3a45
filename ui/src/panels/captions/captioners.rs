//! The captioners that can be chosen: those that come with the program, and opened files.

use bit_diffusion::{
    data::shapes,
    demo::Demo,
    engine::{CaptionerInfo, Event, ModelId},
    model::Method,
};
use egui::{ComboBox, Ui};

/// A captioner in the list.
struct Known {
    id: ModelId,
    name: String,
    method: Method,
    /// What the engine said of it, once it has.
    info: Option<CaptionerInfo>,
}

/// All captioners.
pub(super) struct Captioners(Vec<Known>);

impl Default for Captioners {
    fn default() -> Self {
        let known = |(demo, method): (Demo, Method)| Known {
            id: ModelId::Demo(demo),
            name: demo.label().to_owned(),
            method,
            info: None,
        };
        Self(Demo::CAPTIONERS.into_iter().map(known).collect())
    }
}

impl Captioners {
    /// Takes note of what the engine says of a captioner. Of one that was just opened, how to ask for it and how it works.
    pub fn on_event(&mut self, event: &Event) -> Option<(ModelId, Method)> {
        match event {
            Event::CaptionsStarted { request, captioner, .. } => {
                if let Some(known) = self.0.iter_mut().find(|known| known.id == request.model) {
                    known.info = Some(captioner.clone());
                }
                None
            }
            Event::OpenedCaptioner { model, name, info, .. } => {
                let (id, name, method) = (*model, name.clone(), info.method);
                self.0.push(Known { id, name, method, info: Some(info.clone()) });
                Some((id, method))
            }
            _ => None,
        }
    }

    /// What the engine said of a captioner, once it has.
    pub fn info(&self, id: ModelId) -> Option<&CaptionerInfo> {
        self.0.iter().find(|known| known.id == id)?.info.as_ref()
    }

    /// Whether a captioner looks at photographs rather than at scenes of shapes.
    pub fn sees_photographs(&self, id: ModelId) -> bool {
        match (id, self.info(id)) {
            (_, Some(info)) => info.size != shapes::SIZE,
            (ModelId::Demo(demo), None) => demo.sees_photographs(),
            (_, None) => false,
        }
    }

    pub fn name(&self, id: ModelId) -> &str {
        self.0.iter().find(|known| known.id == id).map_or("", |known| &known.name)
    }

    /// A choice among those of one method.
    pub fn ui(&self, ui: &mut Ui, label: &str, method: Method, chosen: &mut ModelId) {
        let text = self.name(*chosen).to_owned();
        let list = ComboBox::from_label(label).width(150.0).selected_text(text).show_ui(ui, |ui| {
            for known in self.0.iter().filter(|known| known.method == method) {
                ui.selectable_value(chosen, known.id, &known.name);
            }
        });
        let how = match method {
            Method::BitDiffusion => "Writes all words at once, from noise, in a few steps",
            Method::Autoregressive => "Writes one word after the other, each a choice among all words",
        };
        let described = self.info(*chosen).map(described).unwrap_or_default();
        list.response
            .on_hover_text(format!("{how}{described}\n\nOpen… and dropping a file on the window bring in others"));
    }
}

fn described(info: &CaptionerInfo) -> String {
    let CaptionerInfo { size, length, pieces, n_parameters, data, .. } = info;
    let bits = info.codec.bits_per_symbol();
    format!(
        "\n\nSees {size}×{size} pixels; at most {length} tokens of {}, {bits} bits each; {n_parameters} weights, trained on {data}",
        pieces.len()
    )
}
