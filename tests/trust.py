"""Makes one side of a forest trust in both directions, in the database of a domain itself: its controller serves no RPC. What it holds is in
[MS-ADTS] 6.1.6.7. usage: trust.py FOLDER DOMAIN NETBIOS-NAME SID: the folder of the one domain, and the names of the other"""

import sys
import time

import samba
from samba.auth import system_session
from samba.dcerpc import drsblobs, lsa, security
from samba.ndr import ndr_pack
from samba.param import LoadParm
from samba.samdb import SamDB

SECRET = "Passw0rd!Trust"
BOTH_DIRECTIONS, UPLEVEL, FOREST_TRANSITIVE, AES = "3", "2", "8", "24"


def name(text):
    string = drsblobs.ForestTrustString()
    string.string = text
    return string


def record(kind, data):
    record = drsblobs.ForestTrustInfoRecord()
    record.flags, record.timestamp = 0, samba.unix2nttime(int(time.time()))
    record.type, record.data = kind, data
    armor = drsblobs.ForestTrustInfoRecordArmor()
    armor.record = record
    return armor


def secret():
    clear = drsblobs.AuthInfoClear()
    password = list(SECRET.encode("utf-16-le"))
    # The size comes first: when it is set, the list is cut to it.
    clear.size, clear.password = len(password), password
    key = drsblobs.AuthenticationInformation()
    key.LastUpdateTime = samba.unix2nttime(int(time.time()))
    key.AuthType, key.AuthInfo = lsa.TRUST_AUTH_TYPE_CLEAR, clear
    keys = drsblobs.AuthenticationInformationArray()
    keys.count, keys.array = 1, [key]
    blob = drsblobs.trustAuthInOutBlob()
    blob.count, blob.current = 1, keys
    return ndr_pack(blob)


folder, domain, flat, sid = sys.argv[1:]
sid = security.dom_sid(sid)
parameters = LoadParm()
parameters.load(f"{folder}/etc/smb.conf")
own = SamDB(url=f"{folder}/private/sam.ldb", session_info=system_session(), lp=parameters)
info = drsblobs.ForestTrustDataDomainInfo()
info.sid, info.dns_name, info.netbios_name = sid, name(domain), name(flat)
records = [
    record(drsblobs.FOREST_TRUST_TOP_LEVEL_NAME, name(domain)),
    record(drsblobs.FOREST_TRUST_DOMAIN_INFO, info),
]
forest = drsblobs.ForestTrustInfo()
forest.version, forest.count, forest.records = 1, len(records), records
own.add(
    {
        "dn": f"CN={domain},CN=System,{own.domain_dn()}",
        "objectClass": "trustedDomain",
        "trustType": UPLEVEL,
        "trustAttributes": FOREST_TRANSITIVE,
        "trustDirection": BOTH_DIRECTIONS,
        "flatName": flat,
        "trustPartner": domain,
        "trustAuthIncoming": secret(),
        "trustAuthOutgoing": secret(),
        "securityIdentifier": ndr_pack(sid),
        "msDS-SupportedEncryptionTypes": AES,
        "msDS-TrustForestTrustInfo": ndr_pack(forest),
    }
)
