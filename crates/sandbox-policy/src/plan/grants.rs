//! What Landlock allows: a second, independent opinion beside the mounts.

use serde::{Deserialize, Serialize};

use crate::path::AbsolutePath;
use crate::plan::mount::RootIndex;

/// One thing that Landlock allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grant {
    /// Everything can be read and executed.
    ReadEverything,
    /// Everything below a root can be changed.
    Root(RootIndex),
    /// Everything below the private `/tmp` can be changed.
    PrivateTmp(AbsolutePath),
    /// The nodes of the private `/dev`, its `shm`, and the terminals that the
    /// program inherits can be used.
    Devices,
}
