//! Changes of a validation: annotations and `spec.suspend`, as the documentation has them for kubectl.

use kube::ResourceExt as _;
use perfval_api::condition::{self, CLEANED_UP};
use perfval_api::text::number_of;
use perfval_api::{Leftovers, PerfValidation, Phase, meta};
use serde_json::{Value, json};

use crate::args::{NameArgs, RerunArgs};
use crate::error::Error;
use crate::follow;
use crate::screen::Screen;
use crate::session::Session;

/// The validation of this name, or the only one.
async fn pick(session: &Session, name: Option<&str>) -> Result<PerfValidation, Error> {
    let object = session.pick(name).await?;
    check_not_deleted(session, &object)?;
    Ok(object)
}

/// Refuses a validation that is being deleted: the API server still takes changes, but the operator only cleans up.
pub fn check_not_deleted(session: &Session, object: &PerfValidation) -> Result<(), Error> {
    if object.metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    let (namespace, name) = (&session.namespace, object.name_any());
    Err(Error::BadInput(format!(
        "{namespace}/{name} is being deleted: `kubectl wait --for=delete perfvalidation/{name} -n {namespace} --timeout=10m`, then try again"
    )))
}

/// Requests another run.
pub async fn rerun(screen: &mut Screen, session: &Session, args: &RerunArgs) -> Result<u8, Error> {
    let object = pick(session, args.name.as_deref()).await?;
    let object = ask_for_rerun(screen, session, &object, json!({})).await?;
    let name = object.name_any();
    if args.watch {
        return Box::pin(follow::to_the_end(screen, session, object, args.timeout)).await;
    }
    if !object.spec.suspend {
        screen.print(&format!(
            "{name} runs again; follow it with {}\n",
            session.command("watch", &name)
        ))?;
    }
    Ok(0)
}

/// Sets a token that no run has had, and this metadata in the same call, so that the new run has it.
pub async fn ask_for_rerun(
    screen: &mut Screen,
    session: &Session,
    object: &PerfValidation,
    mut metadata: Value,
) -> Result<PerfValidation, Error> {
    let token = screen.now().timestamp_millis().to_string();
    metadata["annotations"][meta::RERUN] = token.into();
    let changed = session.patch(object, &json!({"metadata": metadata})).await?;
    if object.spec.suspend {
        let name = object.name_any();
        let resume = session.command("resume", &name);
        screen.note(&format!("{name} will run when it is resumed: {resume}."));
    }
    Ok(changed)
}

/// Stops it.
pub async fn suspend(screen: &mut Screen, session: &Session, args: &NameArgs) -> Result<u8, Error> {
    let object = pick(session, args.name.as_deref()).await?;
    let name = object.name_any();
    if object.spec.suspend {
        screen.print(&format!("{name} is suspended already\n"))?;
        return Ok(0);
    }
    session.patch(&object, &json!({"spec": {"suspend": true}})).await?;
    let done = if follow::is_over(&object) {
        "is suspended; no run was active"
    } else {
        "stops, and its GPUs are freed"
    };
    let resume = session.command("resume", &name);
    screen.print(&format!("{name} {done}; go on with {resume}\n"))?;
    Ok(0)
}

/// Lets it run.
pub async fn resume(screen: &mut Screen, session: &Session, args: &NameArgs) -> Result<u8, Error> {
    let object = pick(session, args.name.as_deref()).await?;
    let name = object.name_any();
    if !object.spec.suspend {
        screen.print(&format!(
            "{name} is not suspended; run it again with {}\n",
            session.command("rerun", &name)
        ))?;
        return Ok(0);
    }
    session.patch(&object, &json!({"spec": {"suspend": false}})).await?;
    screen.print(&format!(
        "{name} may run; follow it with {}\n",
        session.command("watch", &name)
    ))?;
    Ok(0)
}

/// Keeps everything of its runs.
pub async fn keep(screen: &mut Screen, session: &Session, args: &NameArgs) -> Result<u8, Error> {
    let object = pick(session, args.name.as_deref()).await?;
    let name = object.name_any();
    let change = json!({"metadata": {"annotations": {meta::NO_CLEANUP: "true"}}});
    session.patch(&object, &change).await?;
    let status = object.status.as_ref();
    let removal = status.and_then(|status| match status.phase? {
        Phase::Completed if condition::is_true(status, CLEANED_UP) => Some("are removed already"),
        Phase::Completed if status.state.leftovers == Some(Leftovers::Kept) => None,
        Phase::Completed | Phase::CleaningUp => Some("are being removed"),
        _ => None,
    });
    if let Some(removal) = removal {
        screen.print(&format!(
            "the objects of {name} {removal}; those of its next run stay ({})\n",
            session.command("rerun", &name)
        ))?;
        return Ok(0);
    }
    let plan = status.and_then(|status| status.placement.as_ref());
    let gpus = plan.map_or_else(
        || "its GPUs".to_owned(),
        |plan| format!("{} of {}", number_of(plan.gpus, "GPU"), plan.node),
    );
    screen.print(&format!(
        "everything of {name} stays after the run, and holds {gpus}; remove it with {}\n",
        session.command("clean-up", &name)
    ))?;
    Ok(0)
}

/// Removes the objects that were kept.
pub async fn clean_up(screen: &mut Screen, session: &Session, args: &NameArgs) -> Result<u8, Error> {
    let object = pick(session, args.name.as_deref()).await?;
    let name = object.name_any();
    if !object.annotations().contains_key(meta::NO_CLEANUP) {
        screen.print(&format!(
            "{name} is not kept: the operator removes the objects of each run\n"
        ))?;
        return Ok(0);
    }
    let change = json!({"metadata": {"annotations": {meta::NO_CLEANUP: null}}});
    session.patch(&object, &change).await?;
    screen.print(&format!(
        "the operator removes what {name} kept; its verdict and results stay\n"
    ))?;
    Ok(0)
}
