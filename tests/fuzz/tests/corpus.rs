//! What was found to reach a corner of a parser reaches it again, and keeps its promises.

use std::fs;
use std::path::Path;

use perfval_fuzz::TARGETS;

#[test]
fn every_input_of_the_corpus_keeps_the_promises() {
    for target in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        let (mut understood, mut refused) = (0, 0);
        for entry in fs::read_dir(&folder).expect("a folder of the corpus") {
            let path = entry.expect("an input").path();
            let input = fs::read(&path).expect("an input");
            // A panic does not say of which input.
            println!("{}", path.display());
            if (target.run)(&input) {
                understood += 1;
            } else {
                refused += 1;
            }
        }
        // A corpus that is never or always understood has tested nothing.
        assert!(
            understood > 0 && refused > 0,
            "{}: {understood} understood, {refused} refused",
            target.name
        );
    }
}
