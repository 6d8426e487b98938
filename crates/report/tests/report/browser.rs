//! The page in a real browser: `just report-browser`. `REPORT_SCREENSHOTS` names a folder that keeps what was seen.

use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::chromium::Chromium;
use super::recorded::{self, Saved};
use super::report;

/// Least contrast of text (WCAG 2.2, AA).
const CONTRAST: f64 = 4.5;

/// Texts whose contrast with what is behind them is too low.
const FAINT: &str = r"(least => {
    const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
    const rgb = (colour, over) => {
        canvas.fillStyle = over; canvas.fillRect(0, 0, 1, 1);
        canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const luminance = rgb => rgb.map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = element => {
        for (let e = element; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (colour !== 'rgba(0, 0, 0, 0)') return colour;
        }
        return 'white';
    };
    const faint = [];
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
        if (!own || ['title', 'desc'].includes(element.localName) || element.closest('.hidden')) continue;
        const style = getComputedStyle(element);
        const back = rgb(behind(element), 'white');
        const front = rgb(element.namespaceURI.endsWith('svg') ? style.fill : style.color, `rgb(${back})`);
        const [a, b] = [luminance(front), luminance(back)].sort((a, b) => b - a);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < least) faint.push(`${element.localName}.${element.getAttribute('class')} ${ratio.toFixed(2)}: ${element.textContent.slice(0, 40)}`);
    }
    return faint;
})";

fn page(folder: &Path, run: &Saved) -> PathBuf {
    let path = folder.join(format!("{}.html", run.object.metadata.name.as_deref().expect("a name")));
    std::fs::write(&path, report(run).html()).expect("a file");
    path
}

fn keep(browser: &mut Chromium, name: &str) {
    let Some(folder) = std::env::var_os("REPORT_SCREENSHOTS").filter(|folder| !folder.is_empty()) else {
        return;
    };
    let taken = browser.call(
        "Page.captureScreenshot",
        &json!({"format": "png", "captureBeyondViewport": true}),
    );
    let ByteString(picture) = serde_json::from_value(taken["data"].clone()).expect("a picture");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(Path::new(&folder).join(format!("{name}.png")), picture).expect("a file");
}

/// What the browser reported of the page itself: messages, errors, and requests beside the file.
fn complaints(browser: &Chromium) -> Vec<&Value> {
    let known = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
    let complaint = |event: &&Value| {
        let method = event["method"].as_str().unwrap_or_default();
        let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
        let asked = method == "Network.requestWillBeSent" && !url.starts_with("file://") && !url.starts_with("data:");
        known.contains(&method) || asked
    };
    browser.events.iter().filter(complaint).collect()
}

#[test]
#[ignore = "needs Debian's chromium: just report-browser"]
fn a_page_is_quiet_readable_and_fits_light_dark_narrow_and_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut browser = Chromium::start();
    for run in recorded::all() {
        let name = run.object.metadata.name.clone().expect("a name");
        let path = page(folder.path(), &run);
        browser.show("light", "screen", 1280);
        browser.open(&path);
        assert_eq!(complaints(&browser), Vec::<&Value>::new(), "{name}");
        for (scheme, media, width) in [
            ("light", "screen", 1280),
            ("dark", "screen", 1280),
            ("light", "screen", 400),
            ("dark", "screen", 400),
            ("dark", "print", 794),
        ] {
            let seen = format!("{name} {scheme} {media} {width}");
            browser.show(scheme, media, width);
            let dark = browser.value("getComputedStyle(document.body).backgroundColor");
            assert_eq!(
                dark != "rgb(255, 255, 255)",
                scheme == "dark" && media == "screen",
                "{seen}: {dark}"
            );
            let wider = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert_eq!(wider, 0, "{seen}: it scrolls sideways");
            let faint = browser.value(&format!("({FAINT})({CONTRAST})"));
            assert_eq!(faint, json!([]), "{seen}");
            // The verdict and its message are seen without scrolling on a usual screen.
            let verdict =
                browser.value("document.querySelector('.verdict .message').getBoundingClientRect().bottom < 800");
            assert_eq!(verdict, true, "{seen}");
            keep(&mut browser, &seen.replace(' ', "-"));
        }
        assert_eq!(complaints(&browser), Vec::<&Value>::new(), "{name}");
    }
}

#[test]
#[ignore = "needs Debian's chromium: just report-browser"]
fn a_screen_reader_finds_headings_in_order_tables_with_names_and_drawings_with_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut browser = Chromium::start();
    browser.show("light", "screen", 1280);
    let path = page(folder.path(), &recorded::slow());
    browser.open(&path);
    let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
    let nodes = tree["nodes"].as_array().expect("nodes");
    let of_role = |role: &str| -> Vec<&Value> {
        let is = |node: &&Value| node["role"]["value"] == role && node["ignored"] != true;
        nodes.iter().filter(is).collect()
    };
    for role in ["image", "table", "region", "navigation", "main"] {
        let all = of_role(role);
        assert!(!all.is_empty(), "no {role}");
        for node in all.iter().filter(|_| role != "main") {
            let name = node["name"]["value"].as_str().unwrap_or_default();
            assert!(!name.is_empty(), "a {role} without a name: {node}");
        }
    }
    let level = |node: &&Value| {
        let properties = node["properties"].as_array().into_iter().flatten();
        properties.into_iter().find(|property| property["name"] == "level")?["value"]["value"].as_i64()
    };
    let levels: Vec<i64> = of_role("heading").iter().filter_map(level).collect();
    assert_eq!(levels.first(), Some(&1));
    assert!(
        levels.len() > 10 && levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
        "{levels:?}"
    );
}

#[test]
#[ignore = "needs Debian's chromium: just report-browser"]
fn hostile_names_run_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut browser = Chromium::start();
    let mut run = recorded::slow();
    let name = "</title></style><script>console.log(1)</script><img src=http://127.0.0.1:9/x onerror=console.log(2)>";
    run.object.metadata.namespace = Some(name.to_owned());
    let status = run.object.status.as_mut().expect("a status");
    status.message = Some(name.to_owned());
    status.state.worker_pods[0].pod = name.to_owned();
    browser.open(&page(folder.path(), &run));
    assert_eq!(complaints(&browser), Vec::<&Value>::new());
    assert_eq!(browser.value("document.scripts.length + document.images.length"), 0);
    assert_eq!(browser.value("document.querySelector('.message').textContent"), name);
}

#[test]
#[ignore = "needs Debian's chromium: just report-browser"]
fn paper_holds_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut browser = Chromium::start();
    browser.open(&page(folder.path(), &recorded::large()));
    browser.show("dark", "print", 794);
    let hidden =
        browser.value("[...document.querySelectorAll('details > *')].filter(e => !e.checkVisibility()).length");
    assert_eq!(hidden, 0, "what can be opened is open on paper");
    let printed = browser.call("Page.printToPDF", &json!({}));
    let size = printed["data"].as_str().map_or(0, str::len);
    assert!(size > 50_000, "{size} bytes");
}
