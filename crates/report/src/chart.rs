//! Small static charts as SVG.
//!
//! A chart has a title and a description for screen readers, and takes its colours from the page's style sheet. None of the Rust
//! libraries read in November 2026 (`plotters`, `kuva`, `charts-rs`, `poloto`, `charming`) does both without JavaScript.

mod axis;
mod points;

use maud::{Markup, html};

pub(crate) use self::axis::{Axis, short};
use self::points::{n, path, thin};
use crate::timeline::ChartLine;

/// Points of one line in a drawing: the eye cannot separate more.
const POINTS: usize = 480;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 32.0;

#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Unique in the page.
    pub id: String,
    pub title: String,
    /// Content of the chart, in words.
    pub description: String,
    pub size: (f64, f64),
    pub x: Axis,
    pub y: Axis,
    pub bands: Vec<Band>,
    pub lines: Vec<Drawn>,
    pub rules: Vec<Rule>,
    pub shapes: Vec<ChartShape>,
}

/// A line and its class in the style sheet.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub class: &'static str,
    pub line: ChartLine,
}

/// A part of the x axis.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    pub from: f64,
    pub to: f64,
    pub class: &'static str,
    pub label: String,
}

/// A straight line across, such as a threshold.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub at: RulePosition,
    pub class: &'static str,
    pub label: String,
}

/// Position of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RulePosition {
    X(f64),
    Y(f64),
}

/// A point or a box with a form of its own: colour is never the only difference.
#[derive(Clone, Debug)]
pub(crate) enum ChartShape {
    Dot(f64, f64, &'static str),
    Cross(f64, f64, &'static str),
    Square(f64, f64, &'static str),
    /// From the first to the last of five values, a box between the second and the fourth, a stroke at the third.
    Spread(f64, [f64; 5], &'static str),
}

impl Chart {
    /// A drawing without content.
    pub fn new(id: impl Into<String>, title: impl Into<String>, size: (f64, f64), x: Axis, y: Axis) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            description: String::new(),
            size,
            x,
            y,
            bands: Vec::new(),
            lines: Vec::new(),
            rules: Vec::new(),
            shapes: Vec::new(),
        }
    }

    /// The drawing with its caption.
    pub fn figure(&self) -> Markup {
        html! {
            figure { figcaption { (self.title) } (self.svg()) }
        }
    }

    /// The drawing alone.
    pub fn svg(&self) -> Markup {
        let (width, height) = self.size;
        let (title, description) = (format!("{}-t", self.id), format!("{}-d", self.id));
        html! {
            svg role="img" aria-labelledby=(format!("{title} {description}")) viewBox=(format!("0 0 {width} {height}")) {
                title id=(title) { (self.title) }
                desc id=(description) { (self.description) }
                @for band in &self.bands { (self.band(band)) }
                (self.grid())
                @for drawn in &self.lines {
                    path class=(drawn.class) d=(path(&thin(&drawn.line, POINTS), |point| self.place(point))) {}
                }
                @for rule in &self.rules { (self.rule(rule)) }
                @for shape in &self.shapes { (self.shape(shape)) }
            }
        }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.part(value) * (self.size.0 - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let bottom = self.size.1 - BOTTOM;
        bottom - self.y.part(value) * (bottom - TOP)
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    fn grid(&self) -> Markup {
        let (right, bottom) = (self.size.0 - RIGHT, self.size.1 - BOTTOM);
        html! {
            @for tick in &self.y.ticks {
                path.grid d=(format!("M{} {}H{}", n(LEFT), n(self.y(*tick)), n(right))) {}
                text.tick x=(n(LEFT - 5.0)) y=(n(self.y(*tick) + 3.5)) text-anchor="end" { (self.y.shown(*tick)) }
            }
            @for tick in &self.x.ticks {
                path.axis d=(format!("M{} {}v4", n(self.x(*tick)), n(bottom))) {}
                text.tick x=(n(self.x(*tick))) y=(n(bottom + 15.0)) text-anchor="middle" { (self.x.shown(*tick)) }
            }
            path.axis d=(format!("M{} {}V{}H{}", n(LEFT), n(TOP), n(bottom), n(right))) {}
            text.unit x="2" y="11" { (self.y.label) }
            text.unit x=(n(right)) y=(n(self.size.1 - 3.0)) text-anchor="end" { (self.x.label) }
        }
    }

    fn band(&self, band: &Band) -> Markup {
        let (from, to) = (self.x(band.from), self.x(band.to));
        let bottom = self.size.1 - BOTTOM;
        html! {
            rect class=(band.class) x=(n(from)) y=(n(TOP)) width=(n((to - from).max(0.0))) height=(n(bottom - TOP)) {}
            @if !band.label.is_empty() {
                text.band x=(n(f64::midpoint(from, to))) y=(n(TOP - 5.0)) text-anchor="middle" { (band.label) }
            }
        }
    }

    fn rule(&self, rule: &Rule) -> Markup {
        let (right, bottom) = (self.size.0 - RIGHT, self.size.1 - BOTTOM);
        match rule.at {
            RulePosition::X(value) => {
                let x = self.x(value);
                // The text stays inside of the drawing.
                let (anchor, beside) = if x > f64::midpoint(LEFT, right) {
                    ("end", x - 4.0)
                } else {
                    ("start", x + 4.0)
                };
                html! {
                    path class=(rule.class) d=(format!("M{} {}V{}", n(x), n(TOP), n(bottom))) {}
                    text.note x=(n(beside)) y=(n(bottom - 6.0)) text-anchor=(anchor) { (rule.label) }
                }
            }
            RulePosition::Y(value) => html! {
                path class=(rule.class) d=(format!("M{} {}H{}", n(LEFT), n(self.y(value)), n(right))) {}
                text.note x=(n(right - 2.0)) y=(n(self.y(value) - 4.0)) text-anchor="end" { (rule.label) }
            },
        }
    }

    fn shape(&self, shape: &ChartShape) -> Markup {
        match *shape {
            ChartShape::Dot(x, y, class) => {
                let (x, y) = self.place((x, y));
                html! { circle class=(class) cx=(n(x)) cy=(n(y)) r="4.5" {} }
            }
            ChartShape::Cross(x, y, class) => {
                let (x, y) = self.place((x, y));
                html! { path class=(class) d=(format!("M{} {}l8 8m0 -8l-8 8", n(x - 4.0), n(y - 4.0))) {} }
            }
            ChartShape::Square(x, y, class) => {
                let (x, y) = self.place((x, y));
                html! { path class=(class) d=(format!("M{} {}h8v8h-8z", n(x - 4.0), n(y - 4.0))) {} }
            }
            ChartShape::Spread(x, values, class) => {
                let x = self.x(x);
                let [lowest, low, middle, high, highest] = values.map(|value| self.y(value));
                let half = (0.3 * (self.size.0 - LEFT - RIGHT) / self.x.length()).clamp(2.0, 11.0);
                let (left, wide) = (n(x - half), n(2.0 * half));
                html! {
                    path class=(format!("whisker {class}")) d=(format!("M{} {}V{}M{} {}V{}", n(x), n(lowest), n(low), n(x), n(high), n(highest))) {}
                    rect class=(format!("spread {class}")) x=(left) y=(n(high)) width=(wide) height=(n((low - high).max(1.0))) {}
                    path.median d=(format!("M{left} {}h{wide}", n(middle))) {}
                }
            }
        }
    }
}

/// Placeholder of a chart without any recorded data.
pub(crate) fn absent(title: &str, why: &str) -> Markup {
    html! {
        figure.absent { figcaption { (title) } p { strong { "Not recorded" } ": " (why) } }
    }
}
