//! Tables on terminals of all widths, and through a pipe.

use super::desk::Desk;
use super::diff::two_runs;
use super::pty::Terminal;

const TABLES: [&str; 6] = ["get", "get -A", "get run -o wide", "history", "diff run", "presets"];

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

async fn on(desk: &mut Desk, columns: Option<usize>, command: &str) -> String {
    desk.columns = columns;
    desk.types(command).await.out
}

#[tokio::test]
async fn no_line_is_longer_than_the_terminal_and_nothing_is_cut() {
    let mut desk = two_runs();
    for command in TABLES {
        let piped = on(&mut desk, None, command).await;
        for columns in [160, 80, 60, 40, 20] {
            let page = on(&mut desk, Some(columns), command).await;
            for line in page.lines() {
                assert!(line.chars().count() <= columns, "{command}, {columns}: {line}\n{page}");
            }
            let all = words(&page).collect::<String>();
            // The name of a column without a value is not there.
            let lost = piped.lines().skip(1).flat_map(words).find(|word| !all.contains(word));
            assert_eq!(lost, None, "{command}, {columns}:\n{page}");
        }
    }
}

#[tokio::test]
async fn a_pipe_gets_one_line_for_each_row_however_long_it_is() {
    let mut desk = two_runs();
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"]["message"] = "502: <html>\r\n<hr>nginx\n</html>".into();
    });
    for command in ["get", "get -A", "get run -o wide"] {
        let piped = on(&mut desk, None, command).await;
        assert_eq!(piped.lines().count(), 2, "{command}:\n{piped}");
        assert_eq!(
            on(&mut desk, Some(1000), command).await,
            piped,
            "as on a terminal with room"
        );
    }
    let history = on(&mut desk, None, "history").await;
    assert!(history.lines().next().is_some_and(|head| head.len() > 80), "{history}");
}

#[tokio::test]
async fn a_narrow_row_is_a_paragraph_with_the_names_of_its_columns() {
    let mut desk = two_runs();
    let history = on(&mut desk, Some(40), "history").await;
    assert!(
        history.starts_with("RUN 2\n  VERDICT Passed  REASON GatesMet\n"),
        "{history}"
    );
    let diff = on(&mut desk, Some(40), "diff run").await;
    assert!(diff.contains("verdict\n  run/1 Passed  run/2 Passed\n"), "{diff}");
    assert!(
        diff.contains("What differs in what they ran on, and\nmay be the reason:\n"),
        "{diff}"
    );
    let get = on(&mut desk, Some(40), "get").await;
    assert!(
        get.starts_with("NAME run\n  PHASE Completed  VERDICT Passed\n"),
        "{get}"
    );
}

#[test]
fn a_real_terminal_breaks_no_line() {
    let desk = two_runs();
    for columns in [80, 40] {
        for command in TABLES {
            let terminal = Terminal::start(&desk.server, columns, "xterm-256color", command);
            assert_eq!(terminal.ends(), 0, "{command}");
            assert!(!terminal.breaks_a_line(), "{command}, {columns}:\n{}", terminal.text());
        }
    }
}
