"""Changes and sets the password of the account whose tickets KRB5CCNAME names, by MIT's library: `kpasswd` takes no tickets, but the old
password. It prints what the domain answers. usage: kpasswd.py PRINCIPAL"""

import ctypes
import sys

Pointer = ctypes.c_void_p


class Data(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_int), ("length", ctypes.c_uint), ("data", Pointer)]


class Credentials(ctypes.Structure):
    """The start of krb5_creds, and room for the rest."""

    _fields_ = [("magic", ctypes.c_int), ("client", Pointer), ("server", Pointer), ("rest", ctypes.c_byte * 256)]


krb5 = ctypes.CDLL("libkrb5.so.3")
krb5.krb5_get_error_message.restype = ctypes.c_char_p
context, cache, wanted, given = Pointer(), Pointer(), Credentials(), Pointer()
code, word, answer = ctypes.c_int(), Data(), Data()


def call(name, *arguments):
    failed = getattr(krb5, name)(*arguments)
    if failed:
        sys.exit(f"{name}: {krb5.krb5_get_error_message(context, failed).decode()}")


def replace(name, *principal):
    results = [ctypes.byref(result) for result in (code, word, answer)]
    call(name, context, given, b"N3w.Passw0rd.1", *principal, *results)
    print(f"{name}: {ctypes.string_at(word.data, word.length).decode()}")


call("krb5_init_context", ctypes.byref(context))
call("krb5_cc_default", context, ctypes.byref(cache))
for field, name in (Credentials.client, sys.argv[1]), (Credentials.server, "kadmin/changepw"):
    call("krb5_parse_name", context, name.encode(), ctypes.byref(wanted, field.offset))
call("krb5_get_credentials", context, 0, cache, ctypes.byref(wanted), ctypes.byref(given))
replace("krb5_change_password")
replace("krb5_set_password", Pointer(wanted.client))
