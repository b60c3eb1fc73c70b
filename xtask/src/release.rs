//! The dry run of a release: everything that the workflow `release.yml` does for a tag on one platform, except publishing.

use crate::dist::VERSION;
use crate::step::step;
use crate::workspace::{cargo, command, read, root};
use crate::{groups, installed, node, npm};

const PUBLISH: &str = "publish --workspace --locked --dry-run";

/// Checks the versions, builds and tests the files of this platform, and packs the crates and the npm package.
pub(crate) fn check() -> Result<(), String> {
    check_versions()?;
    groups::run_job(installed::job(), crate::workspace::DIST)?;
    // It packs and builds the crates in the order of their dependencies, each with those that it packed before.
    step("crates", &mut cargo(PUBLISH))?;
    groups::run(&[npm::PACKAGE], None)?;
    let package = node::packages().with_file_name(npm::SOURCE);
    step(
        "npm package",
        command("npm pack --dry-run").current_dir(package),
    )
}

/// Checks that the changelog, the npm package and the tag that is released, if there is one, have the version of the crates.
fn check_versions() -> Result<(), String> {
    let is_tag = std::env::var("GITHUB_REF_TYPE").is_ok_and(|kind| kind == "tag");
    let tag = std::env::var("GITHUB_REF_NAME").unwrap_or_default();
    if is_tag && tag != format!("v{VERSION}") {
        return Err(format!(
            "the tag is `{tag}`, but the crates have version {VERSION}"
        ));
    }
    let heading = if is_tag {
        format!("## {VERSION}\n")
    } else {
        VERSION.to_owned()
    };
    let found = [
        ("CHANGELOG.md", heading),
        (
            "typescript/package.json",
            format!("\"version\": \"{VERSION}\""),
        ),
    ];
    for (file, version) in found {
        if !read(&root().join(file))?.contains(&version) {
            return Err(format!("{file} has no `{}`", version.trim_end()));
        }
    }
    Ok(())
}
