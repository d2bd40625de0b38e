#!/bin/sh
# Makes ROLL.TEST, whose controller is dc1.roll.test, beside the domain of tests/directory.sh, with an account whose password lives 20 hours. It runs where that one is installed.
# usage: roll-domain.sh ADDRESS NAME-OF-THE-ACCOUNT
set -eu
rm -rf /roll && mkdir -p /roll/run
samba-tool domain provision --realm=ROLL.TEST --domain=ROLL --adminpass='Passw0rd!Admin' --server-role=dc --dns-backend=SAMBA_INTERNAL \
  --targetdir=/roll --host-name=dc1 --host-ip="$1" --function-level=2016 --base-schema=2019 --option='ad dc functional level = 2016'
sed -i '/dns forwarder/d; s#log file = .*#log file = /roll/log.%m#' /roll/etc/smb.conf
sed -i "/^\[global\]/a \\\tserver services = ldap, kdc, cldap\n\tinterfaces = $1\n\tbind interfaces only = yes\n\tpid directory = /roll/run\n\tncalrpc dir = /roll/run/ncalrpc\n\ttls cafile = /tls/ca.pem\n\ttls certfile = /tls/roll-cert.pem\n\ttls keyfile = /tls/roll-key.pem" /roll/etc/smb.conf
administer() {
  samba-tool "$@" --configfile=/roll/etc/smb.conf -H /roll/private/sam.ldb
}
administer domain kds root-key create --use-start-time="$(date -u -d '-30 days' +%Y-%m-%dT%H:%M:%S+00:00)"
administer user create broker 'Passw0rd!Broker'
administer user create visitor 'Passw0rd!Visitor'
administer service-account create --name="$2" --dns-host-name="$2.roll.test" --managed-password-interval=1
administer service-account group-msa-membership add --name="$2" --principal=CN=broker,CN=Users,DC=roll,DC=test
administer spn add "HTTP/$2.roll.test" "$2\$"
printf 'dn: CN=%s,CN=Managed Service Accounts,DC=roll,DC=test\nchangetype: modify\nreplace: msDS-SupportedEncryptionTypes\nmsDS-SupportedEncryptionTypes: 24\n-\nreplace: userAccountControl\nuserAccountControl: 4096\n' "$2" |
  ldbmodify -H /roll/private/sam.ldb
