//! sandbox-policy
