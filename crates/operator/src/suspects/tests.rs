use std::fs;
use std::path::PathBuf;

use futures::FutureExt as _;
use perfval_api::meta::RERUN;

use super::*;

fn object(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("perf".to_owned()),
        uid: Some(format!("uid-{name}")),
        generation: Some(1),
        ..ObjectMeta::default()
    }
}

/// A process that leads; the Lease and the file outlive it.
struct World {
    _folder: tempfile::TempDir,
    path: PathBuf,
    lease: ObjectMeta,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in-flight");
        Self {
            _folder: folder,
            path,
            lease: ObjectMeta::default(),
        }
    }

    fn lead(&mut self) -> Suspects {
        let suspects = Suspects::new(Some(&self.path));
        suspects.annotate(&mut self.lease);
        suspects.counted();
        suspects
    }

    /// A process leads and dies in the passes of these objects.
    fn die_in(&mut self, objects: &[&ObjectMeta]) {
        let suspects = self.lead();
        for object in objects {
            // A process that dies drops nothing.
            std::mem::forget(suspects.begin(object).now_or_never().expect("its turn"));
        }
    }
}

#[test]
fn sets_an_object_aside_after_two_deaths_in_its_passes_and_no_other() {
    let (victim, bystander) = (object("victim"), object("bystander"));
    let mut world = World::new();
    world.die_in(&[&bystander, &victim]);
    let once = world.lead();
    assert!(!once.is_set_aside(&victim) && !once.is_set_aside(&bystander));
    drop(once.begin(&bystander).now_or_never().expect("its turn"));
    once.annotate(&mut world.lease);
    world.die_in(&[&victim]);
    let twice = world.lead();
    assert!(twice.is_set_aside(&victim) && !twice.is_set_aside(&bystander));
    assert!(!twice.is_untouchable(&victim));
    assert!(twice.begin(&bystander).now_or_never().is_some());
    // The process that writes its condition dies as well.
    world.die_in(&[&victim]);
    assert!(world.lead().is_untouchable(&victim));
}

#[test]
fn takes_an_object_with_one_death_alone() {
    let (victim, other) = (object("victim"), object("other"));
    let mut world = World::new();
    world.die_in(&[&victim]);
    let suspects = world.lead();
    let pass = suspects.begin(&other).now_or_never().expect("its turn");
    assert!(suspects.begin(&victim).now_or_never().is_none(), "beside another");
    drop(pass);
    let alone = suspects.begin(&victim).now_or_never().expect("its turn");
    assert!(suspects.begin(&other).now_or_never().is_none());
    assert!(suspects.share().now_or_never().is_none());
    drop(alone);
    let first = suspects.begin(&victim).now_or_never();
    assert!(
        first.is_some() && suspects.begin(&other).now_or_never().is_some(),
        "it is cleared"
    );
}

#[test]
fn a_pass_that_ends_clears_an_object_in_the_lease_too() {
    let victim = object("victim");
    let mut world = World::new();
    for _ in 0..5 {
        world.die_in(&[&victim]);
        let suspects = world.lead();
        drop(suspects.begin(&victim).now_or_never().expect("its turn"));
        suspects.annotate(&mut world.lease);
        assert_eq!(world.lease.annotations, Some(BTreeMap::new()));
    }
    assert!(!world.lead().is_set_aside(&victim));
}

#[test]
fn takes_an_object_back_when_its_user_or_the_version_of_the_operator_asks_for_it() {
    let victim = object("victim");
    let mut world = World::new();
    world.die_in(&[&victim]);
    world.die_in(&[&victim]);
    let edited = ObjectMeta {
        generation: Some(2),
        ..victim.clone()
    };
    let rerun = ObjectMeta {
        annotations: Some([(RERUN.to_owned(), "1".to_owned())].into()),
        ..victim.clone()
    };
    for change in [edited, rerun] {
        let suspects = world.lead();
        assert!(suspects.is_set_aside(&victim));
        assert!(!suspects.is_set_aside(&change), "{change:?}");
        assert!(!suspects.is_set_aside(&victim), "it begins from nothing");
    }
    let annotations = world.lease.annotations.as_mut().expect("deaths");
    let counted = annotations.values_mut().next().expect("deaths");
    *counted = counted.replace(crate::version::VERSION, "0.0.1");
    assert!(!world.lead().is_set_aside(&victim));
}

#[test]
fn a_process_that_ends_by_itself_leaves_no_suspects() {
    let mut world = World::new();
    let suspects = world.lead();
    let passes: Vec<_> = ["a", "b"]
        .map(|name| suspects.begin(&object(name)).now_or_never().expect("its turn"))
        .into();
    let text = fs::read_to_string(&world.path).expect("the file");
    assert_eq!(text.lines().filter(|line| line.contains("uid-")).count(), 2, "{text}");
    drop(passes);
    drop(suspects);
    world.lead();
    assert_eq!(world.lease.annotations, None);
}

#[test]
fn a_lost_write_of_the_lease_counts_nothing_twice() {
    let victim = object("victim");
    let mut world = World::new();
    world.die_in(&[&victim]);
    let suspects = Suspects::new(Some(&world.path));
    let mut lost = world.lease.clone();
    suspects.annotate(&mut lost);
    suspects.annotate(&mut world.lease);
    suspects.counted();
    assert!(!suspects.is_set_aside(&victim));
    assert_eq!(lost, world.lease);
}

#[test]
fn a_file_that_cannot_be_read_names_no_suspects_and_stops_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let garbage = folder.path().join("garbage");
    fs::write(&garbage, b"\xff\xfe one two three four\n\n x\n").expect("a file");
    for path in [folder.path().to_owned(), folder.path().join("no/such"), garbage] {
        let suspects = Suspects::new(Some(&path));
        let mut lease = ObjectMeta::default();
        suspects.annotate(&mut lease);
        suspects.counted();
        assert_eq!(lease.annotations, None, "{}", path.display());
        assert!(suspects.begin(&object("a")).now_or_never().is_some());
    }
}

#[test]
fn a_new_list_clears_objects_that_it_lacks() {
    let victim = object("victim");
    let mut world = World::new();
    world.die_in(&[&victim]);
    world.die_in(&[&victim]);
    let suspects = world.lead();
    suspects.retain(&["uid-victim".to_owned()].into());
    assert!(suspects.is_set_aside(&victim));
    suspects.retain(&HashSet::new());
    assert!(!suspects.is_set_aside(&victim));
    suspects.annotate(&mut world.lease);
    assert_eq!(world.lease.annotations, Some(BTreeMap::new()));
}
