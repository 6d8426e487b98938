//! Writes the reports of recorded runs into a folder: `cargo run -p perfval-report --example recorded -- DIR`.

#[path = "../tests/report/recorded/mod.rs"]
mod recorded;

use std::path::Path;

use perfval_report::RunReport;

fn main() {
    let folder = std::env::args().nth(1).expect("the folder to write into");
    for run in recorded::all().into_iter().chain([recorded::large()]) {
        let folder = Path::new(&folder).join(run.object.metadata.name.clone().unwrap_or_default());
        std::fs::create_dir_all(&folder).expect("a folder");
        for file in RunReport::new(&run.object, Some(&run.results))
            .expect("a report")
            .files()
        {
            std::fs::write(folder.join(file.name), file.content).expect("a file");
        }
        println!("{}", folder.display());
    }
}
