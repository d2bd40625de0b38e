//! The numbers and identifiers in the output of a command, which are the same in every language of Windows.
//!
//! `nltest` prints `Status = 1722 0x6ba RPC_S_SERVER_UNAVAILABLE`, the code in both bases; `klist` prints
//! `0xc000018b/-1073741429`, the code as an unsigned and as a signed number. The words around them are translated, and in the
//! code page of the container.

/// The exit code and output of a command. The output is never shown.
pub struct CommandOutput {
    pub exit: i64,
    pub printed: String,
}

impl CommandOutput {
    /// The first failed status code: `nltest` prints Win32 codes, `klist` NTSTATUS codes. Otherwise the exit code.
    pub fn failure(&self) -> Option<u32> {
        let codes = self.codes();
        let of_exit = || u32::try_from(self.exit & 0xffff_ffff).ok().filter(|code| *code != 0);
        codes.iter().copied().find(|code| *code != 0).or_else(|| of_exit().filter(|_| codes.is_empty()))
    }

    /// Whether a status code reports success.
    pub fn succeeded(&self) -> bool {
        self.failure().is_none() && self.codes().contains(&0)
    }

    /// All status codes, in their order.
    fn codes(&self) -> Vec<u32> {
        let words: Vec<&str> = self.printed.split_whitespace().collect();
        let of_nltest = words.iter().zip(words.iter().skip(1)).filter_map(|(decimal, hex)| same(decimal, hex));
        let of_klist = words.iter().filter_map(|word| both(word));
        of_nltest.chain(of_klist).collect()
    }

    pub fn sid(&self) -> Option<&str> {
        let is_part = |c: char| c.is_ascii_digit() || c == '-' || c == 'S';
        self.printed.split(|c: char| !is_part(c)).find(|word| word.starts_with("S-1-"))
    }

    /// The domain that `nltest /parentdomain` prints before the number of its kind: `contoso.com. (1)`.
    pub fn parent_domain(&self) -> Option<&str> {
        self.printed.lines().find_map(|line| {
            let (domain, kind) = line.trim().rsplit_once(' ')?;
            let kind = kind.strip_prefix('(')?.strip_suffix(')')?;
            let is_whole = !domain.contains(' ') && kind.parse::<u8>().is_ok();
            is_whole.then(|| domain.trim_end_matches('.'))
        })
    }

    /// Whether all tickets that `klist` lists (`#0>  Client: WebApp1$ @ CONTOSO.COM`) belong to this account in this domain; `None`
    /// without tickets.
    pub fn tickets_are_of(&self, account: &str, domain: &str) -> Option<bool> {
        let mut clients =
            self.printed.lines().filter_map(|line| line.trim().strip_prefix('#')?.split_once('>')).peekable();
        clients.peek()?;
        Some(clients.all(|(_, client)| {
            let principal = client.split_once(':').and_then(|(_, principal)| principal.trim().split_once(" @ "));
            principal.is_some_and(|(name, realm)| {
                let name = name.strip_suffix('$').unwrap_or_default();
                name.eq_ignore_ascii_case(account) && realm.trim().eq_ignore_ascii_case(domain)
            })
        }))
    }

    /// Whether the ticket for `service` uses RC4: `RSADSI RC4-HMAC(NT)` in every language. `klist get` lists all cached tickets. The line
    /// after the client names the server, `krbtgt/CONTOSO.COM @ CONTOSO.COM`.
    pub fn is_rc4(&self, service: &str) -> bool {
        let mut is_meant = false;
        let mut lines = self.printed.lines().map(str::trim);
        while let Some(line) = lines.next() {
            if line.starts_with('#') && line.contains('>') {
                let server = lines.next().and_then(|line| line.split_once(':')).map_or("", |(_, server)| server.trim());
                let name = server.split(" @ ").next().unwrap_or_default();
                let class = name.split('/').next().unwrap_or_default();
                is_meant =
                    [name, class, name.trim_end_matches('$')].iter().any(|known| known.eq_ignore_ascii_case(service));
            } else if is_meant && line.contains("RC4-HMAC") {
                return true;
            }
        }
        false
    }

    /// Whether the output assigns this number, as `nslookup` prints the port of a service record.
    pub fn assigns(&self, number: &str) -> bool {
        self.printed.lines().any(|line| line.rsplit_once('=').is_some_and(|(_, value)| value.trim() == number))
    }
}

/// The code that two words give in decimal and in hexadecimal.
fn same(decimal: &str, hex: &str) -> Option<u32> {
    let code: u32 = decimal.parse().ok()?;
    (u32::from_str_radix(hex.strip_prefix("0x")?, 16).ok()? == code).then_some(code)
}

/// The code that one word gives unsigned and signed: `0xc000018b/-1073741429:`.
fn both(word: &str) -> Option<u32> {
    let (hex, signed) = word.trim_end_matches([':', '.', ',']).strip_prefix("0x")?.split_once('/')?;
    let code = u32::from_str_radix(hex, 16).ok()?;
    let signed: i64 = signed.parse().ok()?;
    (u32::try_from(signed & 0xffff_ffff).ok()? == code).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(exit: i64, printed: &str) -> CommandOutput {
        CommandOutput { exit, printed: printed.to_owned() }
    }

    #[test]
    fn codes_are_read_whatever_stands_around_them() {
        for (exit, printed, code) in [
            (0, "I_NetLogonControl failed: Status = 1722 0x6ba RPC_S_SERVER_UNAVAILABLE", Some(1722)),
            (0, "I_NetLogonControl fehlgeschlagen: Status = 1355 0x54b ERROR_NO_SUCH_DOMAIN\r\n", Some(1355)),
            (
                0,
                "Flags: 80\r\nTrusted DC Name \r\nTrusted DC Connection Status Status = 1311 0x51f ERROR_NO_LOGON_SERVERS\r\n\
                 Trust Verification Status = 1311 0x51f ERROR_NO_LOGON_SERVERS\r\nThe command completed successfully",
                Some(1311),
            ),
            (
                0,
                "Status des sicheren Kanals Status = 0 0x0 NERR_Success\r\nStatus der Vertrauensstellung = 5 0x5 ERROR_ACCESS_DENIED",
                Some(5),
            ),
            (
                0,
                "Error calling API LsaCallAuthenticationPackage (GetTicket substatus): 0x6fb\r\n\r\n\
                 klist failed with 0xc000018b/-1073741429: The SAM database",
                Some(0xc000_018b),
            ),
            (1, "", Some(1)),
            (1722, "no code", Some(1722)),
            (-1_073_741_515, "", Some(0xc000_0135)),
            (0, "a.b. (1)\r\n", None),
            // An exit code says nothing where a status does.
            (1, "Status = 0 0x0 NERR_Success", None),
        ] {
            assert_eq!(answer(exit, printed).failure(), code, "{printed}");
        }
        assert!(answer(0, "Status = 0 0x0 NERR_Success").succeeded());
        assert!(!answer(0, "Flags: 0").succeeded());
    }

    #[test]
    fn the_domain_and_the_clients_of_tickets_are_read() {
        let parent = |printed: &str| answer(0, printed).parent_domain().map(str::to_owned);
        assert_eq!(parent("contoso.com. (1)\r\nDer Befehl").as_deref(), Some("contoso.com"));
        assert_eq!(parent("CONTOSO (1)").as_deref(), Some("CONTOSO"));
        assert_eq!(parent("Cached Tickets: (1)"), None);
        assert_eq!(parent("failed: Status = 1722 0x6ba RPC_S_SERVER_UNAVAILABLE"), None);
        let of = |printed: &str| answer(0, printed).tickets_are_of("WebApp1", "contoso.com");
        let own = "#0>\tClient: webapp1$ @ CONTOSO.COM\r\n\tServer: krbtgt/CONTOSO.COM @ CONTOSO.COM\r\n";
        assert_eq!(of(own), Some(true));
        for other in [
            "#1>\tClient: NODE01$ @ CONTOSO.COM",
            "#1>\tClient: webapp1$ @ EMEA.CONTOSO.COM",
            "#1>\tClient: webapp1 @ CONTOSO.COM",
            "#1>\tunreadable",
        ] {
            assert_eq!(of(&format!("{own}{other}\r\n")), Some(false), "{other}");
        }
        assert_eq!(of("A ticket to krbtgt has been retrieved successfully."), None);
    }

    #[test]
    fn rc4_counts_in_the_ticket_that_was_asked_for() {
        let ticket = |server: &str, encryption: &str| {
            format!(
                "#0>\tClient: WebApp1$ @ CONTOSO.COM\r\n\tServer: {server} @ CONTOSO.COM\r\n\tKerbTicket-Verschl\u{fffd}sselungstyp: {encryption}\r\n\r\n"
            )
        };
        let (rc4, aes) = ("RSADSI RC4-HMAC(NT)", "AES-256-CTS-HMAC-SHA1-96");
        let printed = [
            ticket("krbtgt/CONTOSO.COM", aes),
            ticket("MSSQLSvc/db.contoso.com:1433", rc4),
            ticket("WebApp1$", aes),
            ticket("WebApp2$", rc4),
        ];
        for (service, expected) in [
            ("krbtgt", false),
            ("MSSQLSvc/db.contoso.com:1433", true),
            ("mssqlsvc/DB.contoso.com:1433", true),
            ("WebApp1", false),
            ("webapp2", true),
            ("http/web", false),
        ] {
            assert_eq!(answer(0, &printed.concat()).is_rc4(service), expected, "{service}");
        }
        assert!(answer(0, &ticket("krbtgt/CONTOSO.COM", rc4)).is_rc4("krbtgt"));
        assert!(!answer(0, rc4).is_rc4("krbtgt"));
    }

    #[test]
    fn identifiers_and_numbers_are_found() {
        assert_eq!(answer(0, "\"nt-autorit\u{e4}t\\netzwerkdienst\",\"S-1-5-20\"\r\n").sid(), Some("S-1-5-20"));
        assert_eq!(answer(0, "nt authority").sid(), None);
        assert!(answer(0, "    Gewicht\u{fffd} = 0\r\n\tport           = 389\r\n").assigns("389"));
        assert!(!answer(0, "port = 3890\r\n= 38 389").assigns("389"));
    }
}
