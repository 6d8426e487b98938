//! The sources as they are committed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tar::Archive;

use crate::command::{line, output};
use crate::{Result, archive, version};

/// The sources of one commit, unpacked.
pub struct Source {
    /// Where they are.
    pub root: PathBuf,
    /// The commit.
    pub commit: String,
    /// When it was made (seconds since 1970): the time of every file of the release.
    pub epoch: u64,
}

impl Source {
    /// Unpacks the commit that is checked out; what is not committed is no part of a release.
    pub fn unpack(folder: &Path) -> Result<Self> {
        let git = |arguments: &[&str]| line(Command::new("git").args(arguments));
        let changed = git(&["status", "--porcelain"])?;
        if !changed.is_empty() {
            eprintln!("not committed, and not in the release:\n{changed}");
        }
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let tar = output(Command::new("git").args(["archive", "--format=tar", "HEAD"]))?;
        let mut sources = Archive::new(tar.as_slice());
        // Cargo builds what is newer than its last build: with the commit's times it would ship the programs of another one.
        sources.set_preserve_mtime(false);
        sources.unpack(folder)?;
        Ok(Self {
            root: folder.canonicalize()?,
            commit: git(&["rev-parse", "HEAD"])?,
            epoch: git(&["log", "-1", "--format=%ct"])?.parse()?,
        })
    }

    /// A file of the sources.
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(self.root.join(path)).map_err(|error| format!("{path}: {error}").into())
    }

    /// A program that works on the sources, with the commit's time as the time of day where it asks for one.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("SOURCE_DATE_EPOCH", self.epoch.to_string());
        command
    }

    /// Gives the unpacked sources the version of a release. A commit in development leads to one release only.
    pub fn set_version(&self, release: &str) -> Result<()> {
        let found = self.version()?;
        if version::release_of(&found) != release {
            return Err(format!(
                "Cargo.toml has version {found}, which does not lead to {release}: type just version {release}"
            )
            .into());
        }
        if found != release {
            eprintln!(
                "the commit has version {found}: before you tag one, type just version {release}, \
                 because kustomize reads config/default of the tag"
            );
        }
        version::write(&self.root, &found, release)
    }

    /// Version of the workspace.
    fn version(&self) -> Result<String> {
        let metadata = output(
            self.command("cargo")
                .args(["metadata", "--no-deps", "--format-version=1"]),
        )?;
        let metadata: Value = serde_json::from_slice(&metadata)?;
        let found = metadata["packages"][0]["version"].as_str();
        Ok(found.ok_or("cargo metadata has no version")?.to_owned())
    }

    /// Writes a version into the clone in which this runs.
    pub fn write_version(version: &str) -> Result<()> {
        let clone = Self {
            root: line(Command::new("git").args(["rev-parse", "--show-toplevel"]))?.into(),
            commit: String::new(),
            epoch: 0,
        };
        version::write(&clone.root, &clone.version()?, version)
    }

    /// Writes an image's digest into config/default of the unpacked sources and into the chart's list of images. The chart
    /// uses it from there for this tag only: a value would also apply to another tag that a user sets.
    pub fn pin(&self, image: &str, digest: &str) -> Result<()> {
        let chart = "charts/perfvalidation-operator/Chart.yaml";
        let default = "config/default/kustomization.yaml";
        self.edit(chart, |text| pinned_chart(text, image, digest))?;
        self.edit(default, |text| pinned_images(text, image, digest))
    }

    fn edit(&self, path: &str, change: impl Fn(&str) -> Option<String>) -> Result<()> {
        let text = String::from_utf8(self.read(path)?)?;
        let changed = change(&text).ok_or_else(|| format!("{path} has no place for the digest"))?;
        Ok(fs::write(self.root.join(path), changed)?)
    }

    /// Writes the files of an archive again, sorted and with the commit's time.
    pub fn repack(&self, archive: &[u8]) -> Result<Vec<u8>> {
        archive::write(&archive::read(archive)?, self.epoch)
    }
}

/// The chart's list of images with the digest behind the image's tag.
fn pinned_chart(chart: &str, image: &str, digest: &str) -> Option<String> {
    let (before, after) = chart.split_once(&format!("image: ghcr.io/perfvalidation/{image}:"))?;
    let (tag, rest) = after.split_once('\n')?;
    Some(format!(
        "{before}image: ghcr.io/perfvalidation/{image}:{tag}@{digest}\n{rest}"
    ))
}

/// A kustomization with the digest below the image's name.
fn pinned_images(kustomization: &str, image: &str, digest: &str) -> Option<String> {
    let name = format!("newName: ghcr.io/perfvalidation/{image}\n");
    let pinned = kustomization.replacen(&name, &format!("{name}    digest: {digest}\n"), 1);
    (pinned != kustomization).then_some(pinned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_workflow(name: &str) -> Value {
        let text = fs::read_to_string(format!("../../.github/workflows/{name}.yaml")).expect("a workflow");
        serde_saphyr::from_str(&text).expect("YAML")
    }

    /// The steps of each job of a workflow.
    fn jobs(workflow: &str) -> Vec<(String, Vec<Value>)> {
        let workflow = read_workflow(workflow);
        let jobs = workflow["jobs"].as_object().expect("jobs").iter();
        jobs.map(|(name, job)| (name.clone(), job["steps"].as_array().cloned().unwrap_or_default()))
            .collect()
    }

    /// The place of the first step whose field contains one of these texts.
    fn position(steps: &[Value], field: &str, texts: &[&str]) -> Option<usize> {
        let has_text = |step: &Value| {
            let value = step[field].as_str().unwrap_or_default();
            texts.iter().any(|text| value.contains(text))
        };
        steps.iter().position(has_text)
    }

    /// Whoever moves a tag of an action could otherwise sign our images.
    #[test]
    fn workflows_name_actions_by_commit() {
        let mut actions = 0;
        for entry in fs::read_dir("../../.github/workflows").expect("workflows") {
            let text = fs::read_to_string(entry.expect("a file").path()).expect("text");
            // A workflow of this repository has the commit of the workflow that uses it.
            let is_foreign = |line: &&str| line.contains("uses: ") && !line.contains("uses: ./");
            for line in text.lines().filter(is_foreign) {
                let commit = line.split('@').nth(1).and_then(|rest| rest.split_once(" # v"));
                let is_commit = |hex: &str| hex.len() == 40 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(commit.is_some_and(|(hex, _)| is_commit(hex)), "{line}");
                actions += 1;
            }
        }
        assert!(actions > 20, "{actions}");
    }

    /// `.ci/setup` and the lab refuse an older Go, and the machines of GitHub have one.
    #[test]
    fn jobs_that_build_programs_in_go_install_it_first() {
        let module = fs::read_to_string("../lab/programs/cluster/go.mod").expect("a module");
        let required = module
            .lines()
            .find_map(|line| line.strip_prefix("go "))
            .expect("a version");
        let mut checked = Vec::new();
        for (name, steps) in ["check", "weekly", "release"].into_iter().flat_map(jobs) {
            let Some(use_of_go) = position(&steps, "run", &[".ci/run", ".ci/just setup ", ".ci/just release "]) else {
                continue;
            };
            let install = position(&steps[..use_of_go], "uses", &["actions/setup-go@"]).expect(&name);
            assert_eq!(steps[install]["with"]["go-version"], json!(required), "{name}");
            checked.push(name);
        }
        checked.sort();
        assert_eq!(checked, ["check", "files", "recipe"]);
    }

    /// The paths of a cache are a part of its name. The user who saves it must own the files, and tar by that user would
    /// change the unpacked images of the lab.
    #[test]
    fn one_workflow_saves_the_cache_that_the_other_restores() {
        let paths = |workflow: &str| {
            let mut steps = jobs(workflow).into_iter().map(|(_, steps)| steps);
            let found = steps.find_map(|steps| Some((position(&steps, "uses", &["actions/cache"])?, steps)));
            let (cache, steps) = found.expect("a job with a cache");
            (steps[cache]["with"]["path"].clone(), steps)
        };
        let (saved, steps) = paths("check");
        assert_eq!(saved, paths("weekly").0);
        let saved = saved.as_str().expect("paths");
        assert!(
            !saved
                .lines()
                .any(|path| path.ends_with("perfval-lab") || path.ends_with("images"))
        );
        assert_eq!(position(&steps, "run", &["sudo chown -R"]), Some(steps.len() - 1));
    }

    /// After a failed scan the tag stays on the image of the release before.
    #[test]
    fn images_are_scanned_before_they_get_their_tag() {
        let jobs = jobs("release");
        let position_in = |job: &str, field, text| {
            let (_, steps) = jobs.iter().find(|(name, _)| name == job).expect("the job");
            position(steps, field, &[text])
        };
        assert!(position_in("image", "uses", "anchore/scan-action@").is_some());
        assert!(position_in("image", "run", "--tag").is_none());
        assert_eq!(read_workflow("release")["jobs"]["list"]["needs"], "image");
        assert!(position_in("list", "run", "--tag \"$IMAGE:$tag\"").is_some());
    }

    #[test]
    fn a_digest_stands_at_its_own_image() {
        let chart = include_str!("../../../charts/perfvalidation-operator/Chart.yaml");
        let default = include_str!("../../../config/default/kustomization.yaml");
        let read = |text: &str| serde_saphyr::from_str::<Value>(text).expect("YAML");
        for (image, index) in [("perfvalidation-operator", 0), ("aiperf", 1)] {
            let pinned = read(&pinned_chart(chart, image, "sha256:ab").expect("a place"));
            let images = pinned["annotations"]["artifacthub.io/images"].as_str().expect("images");
            assert_eq!(images.matches("@sha256:ab").count(), 1);
            let image_pinned = read(images)[index]["image"].as_str().expect("an image").to_owned();
            assert!(
                image_pinned.contains(image) && image_pinned.ends_with("@sha256:ab"),
                "{image_pinned}"
            );
            let pinned = read(&pinned_images(default, image, "sha256:ab").expect("a place"));
            assert_eq!(pinned["images"][index]["digest"], "sha256:ab");
        }
        assert_eq!(pinned_chart(chart, "other", "sha256:ab"), None);
        assert_eq!(pinned_images(default, "other", "sha256:ab"), None);
    }
}
