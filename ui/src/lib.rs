//! The studio: every panel, on egui alone, so that the window and the page show the same.
//!
//! Deliberately absent: windows, canvases, files and threads. The shells bring those.

mod chain_panel;
mod codes_panel;
mod controls;
mod pictures;
mod run;
mod toy_panel;

use chain_panel::ChainPanel;
use codes_panel::CodesPanel;
use toy_panel::ToyPanel;

/// The name on the window and the page.
pub const TITLE: &str = "Bit Diffusion Studio";

/// One view of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// The reverse chain on pictures.
    Chain,
    /// One bit in one dimension.
    Toy,
    /// How numbers are written as bits.
    Codes,
}

impl Panel {
    /// Every panel, in the order of their tabs.
    pub const ALL: [Self; 3] = [Self::Chain, Self::Toy, Self::Codes];

    /// The text on the tab.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Chain => "Noise to pictures",
            Self::Toy => "One bit",
            Self::Codes => "Numbers as bits",
        }
    }
}

/// The whole program, but for the window around it.
pub struct Studio {
    panel: Panel,
    chain: ChainPanel,
    toy: ToyPanel,
    codes: CodesPanel,
}

impl Default for Studio {
    fn default() -> Self {
        Self { panel: Panel::Chain, chain: ChainPanel::new(), toy: ToyPanel::new(), codes: CodesPanel::new() }
    }
}

impl Studio {
    /// Draws the studio and moves its work on by a few milliseconds.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        egui::Panel::top("tabs").show(ui, |ui| {
            ui.horizontal_wrapped(|ui| {
                ui.heading(TITLE);
                ui.add_space(8.0);
                for panel in Panel::ALL {
                    ui.selectable_value(&mut self.panel, panel, panel.label());
                }
                ui.add_space(8.0);
                theme_ui(ui);
                ui.weak("on the CPU")
                    .on_hover_text("The perfect denoisers of this version are small: they run on the processor.");
            });
        });
        match self.panel {
            Panel::Chain => self.chain.ui(ui),
            Panel::Toy => self.toy.ui(ui),
            Panel::Codes => self.codes.ui(ui),
        }
    }

    /// Brings a panel to the front.
    pub fn show(&mut self, panel: Panel) {
        self.panel = panel;
    }

    /// How many steps of the picture chain have been made, and how many there will be.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        self.chain.progress()
    }
}

/// Follow the system, light or dark; in words, because the fonts have no pictures of them.
fn theme_ui(ui: &mut egui::Ui) {
    let mut preference = ui.ctx().options(|options| options.theme_preference);
    let before = preference;
    egui::ComboBox::from_id_salt("theme").width(70.0).selected_text(theme_label(preference)).show_ui(ui, |ui| {
        for option in [egui::ThemePreference::System, egui::ThemePreference::Light, egui::ThemePreference::Dark] {
            ui.selectable_value(&mut preference, option, theme_label(option));
        }
    });
    if preference != before {
        ui.ctx().set_theme(preference);
    }
}

fn theme_label(preference: egui::ThemePreference) -> &'static str {
    match preference {
        egui::ThemePreference::System => "Auto theme",
        egui::ThemePreference::Light => "Light",
        egui::ThemePreference::Dark => "Dark",
    }
}
