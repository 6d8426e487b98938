//! `lab prepare`: builds the programs and images of a lab that the cache lacks. Images are made beside the programs,
//! because most of an image is one process that unpacks, and Go's compiler uses the other cores.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Error;
use crate::images::{self, Image};
use crate::options::Options;
use crate::programs::{self, CONTAINERD, CONTROL_PLANE_FAMILIES, Family, NODE_FAMILIES, SIMULATION_FAMILIES};

/// Program families of this lab.
pub fn families(options: &Options) -> impl Iterator<Item = &'static Family> {
    let more = if options.control_plane {
        SIMULATION_FAMILIES
    } else {
        NODE_FAMILIES
    };
    CONTROL_PLANE_FAMILIES.iter().chain(more)
}

/// Builds programs and images, and containerd's store of these images. Returns the archives of the images.
pub fn prepare(options: &Options, say: &mut (dyn FnMut(&str) + Send)) -> Result<Vec<PathBuf>, Error> {
    let say = Mutex::new(say);
    let tell = |text: &str| (say.lock().unwrap_or_else(PoisonError::into_inner))(text);
    let (archives, built) = thread::scope(|scope| {
        let images = scope.spawn(|| make_images(options, &tell));
        let built = families(options).try_for_each(|family| programs::build(family, &mut |text| tell(text)).map(drop));
        if let Err(error) = &built {
            tell(&format!("failed: {error}"));
        }
        (images.join(), built)
    });
    built?;
    let archives = archives.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    if !options.control_plane {
        images::make_store(&CONTAINERD.folder(), &archives, &mut |text| tell(&of_images(text)))?;
    }
    Ok(archives)
}

fn make_images(options: &Options, tell: &(dyn Fn(&str) + Sync)) -> Result<Vec<PathBuf>, Error> {
    let make = |image: Image| images::build(&image, &mut |text| tell(&of_images(text)));
    images_of(options).map(make).collect()
}

fn images_of(options: &Options) -> impl Iterator<Item = Image> {
    let dynamo = Image::Dynamo {
        version: options.dynamo,
    };
    let with_node = !options.control_plane;
    [
        (with_node, Image::Pause),
        (with_node, Image::Busybox),
        (with_node && !options.without_dynamo_image, dynamo),
    ]
    .into_iter()
    .filter_map(|(wanted, image)| wanted.then_some(image))
}

fn of_images(text: &str) -> String {
    format!("images: {}", text.trim_start())
}
