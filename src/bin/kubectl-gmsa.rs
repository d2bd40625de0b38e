//! `kubectl gmsa`: the tool for the people who write the manifests.

use clap::Parser;

/// See the mistakes in GMSA manifests before a pod does.
#[derive(Debug, Parser)]
#[command(name = "kubectl-gmsa", version, arg_required_else_help = true)]
struct Args {}

fn main() {
    Args::parse();
}
