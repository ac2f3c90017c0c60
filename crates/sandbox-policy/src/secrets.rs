//! What a command has no business to read: keys and tokens by which it could
//! act as its user elsewhere.
//!
//! A default of commands alone, which `--readable` and `--secrets show` lift. A
//! list of names can be complete only for programs that somebody thought of; it
//! is printed by `sandpatch explain`.

use crate::path::AbsolutePath;

/// Places below a home directory that hold secrets.
pub const SECRETS: [&str; 34] = [
    // Keys.
    ".ssh",
    ".gnupg",
    ".password-store",
    ".local/share/keyrings",
    ".pki",
    // Clouds.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".oci",
    ".kube",
    ".vault-token",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".boto",
    // Registries.
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings-security.xml",
    // Version control.
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    // Agents.
    ".codex/auth.json",
    ".claude/.credentials.json",
];

/// Lists the places of secrets below a home directory.
pub fn below(home: &AbsolutePath) -> Vec<AbsolutePath> {
    let places = SECRETS.iter();
    places
        .filter_map(|place| AbsolutePath::new(home.as_path().join(place)).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_listed_once_and_lies_below_the_home() {
        let home = AbsolutePath::new("/home/u").unwrap();
        let mut places = below(&home);
        assert_eq!(places.len(), SECRETS.len());
        assert!(places.iter().all(|place| place.is_below(&home)));
        places.sort();
        places.dedup();
        assert_eq!(places.len(), SECRETS.len());
    }
}
