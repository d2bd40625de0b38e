//! `account test`: tests whether a user, such as the user of a plugin, may retrieve the password of an account.
//!
//! Invariant: the password is never kept, printed or written. Only its presence is checked, except with `--ticket`.

use clap::{Args, builder::NonEmptyStringValueParser};
use gmsa_core::diagnostic::Check;
use time::UtcDateTime;

use crate::shared::{
    Outcome,
    connection::block_on,
    directory::{DirectoryOptions, Source, typed_account},
    output::{Filter, Shape, print_checks},
};
use gmsa_accounts::{lint, ticket::ticket};
use gmsa_directory::Directory;

const ABOUT: &str = "password";

const EXAMPLES: &str = "Examples:
  # Log on as the user whose password the plugin on the nodes has
  kubectl gmsa account test WebApp1 --directory contoso.com --directory-user plugin@contoso.com

  # Log on as the account, too: does its domain controller give it a ticket?
  kubectl gmsa account test WebApp1 --ticket --directory contoso.com --directory-user plugin@contoso.com

  # Ask one domain controller, with an authority of your own
  kubectl gmsa account test WebApp1 --directory ldaps://dc1.contoso.com --directory-ca ca.pem --directory-user plugin@contoso.com";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// The account
    ///
    /// Its SAM name, NAME@DOMAIN, DOMAIN\NAME or a distinguished name
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Log on as the account, with its password
    ///
    /// Requests one ticket from the domain controller that gave the password (TCP 88). The ticket is not kept
    #[arg(long)]
    ticket: bool,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    directory: DirectoryOptions,
}

pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let Some(Source::Live(access)) = options.directory.source()? else {
        anyhow::bail!("missing: --directory ldaps://HOST or DOMAIN, with --directory-user, the user to test");
    };
    let user = access.credentials.user.clone();
    let checks = block_on(async {
        let mut opened = Directory::connect(*access).await?;
        let account = typed_account(&mut opened, &options.name).await?;
        let found = lint::password(&mut opened, &account, &user, UtcDateTime::now()).await?;
        if found.is_empty() {
            let text = format!("{user} may retrieve the password of {}", account.sam);
            let mut checks = vec![Check::pass(ABOUT, text)];
            if options.ticket {
                checks.extend(ticket(&mut opened, &account).await?);
            }
            return Ok(checks);
        }
        Ok(found.into_iter().map(|found| Check::found(ABOUT, found)).collect())
    })?;
    print_checks(checks, options.output, &options.filter)
}
