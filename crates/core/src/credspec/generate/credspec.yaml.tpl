apiVersion: {group}/{version}
kind: {kind}
metadata:
  name: {name}
# Not secret. Everyone who may change it can choose the account that pods log on with.
credspec:
  ActiveDirectoryConfig:
    # What the host may fetch: each account under the domain's DNS and NetBIOS names.
    GroupManagedServiceAccounts:
{accounts}{plugin}  CmsPlugins:
  - ActiveDirectory
  # The domain, and the account that the container logs on with.
  DomainJoinConfig:
    DnsName: {dns}  # (Get-ADDomain).DNSRoot
    DnsTreeName: {forest}  # (Get-ADDomain).Forest
    Guid: {guid}  # (Get-ADDomain).ObjectGUID: the domain's, not the account's
    MachineAccountName: {account}  # the account's SAM name, without $ and domain
    NetBiosName: {netbios}  # (Get-ADDomain).NetBIOSName
    Sid: {sid}  # (Get-ADDomain).DomainSID.Value: the domain's, not the account's
