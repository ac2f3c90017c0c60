//! linux-sandbox
