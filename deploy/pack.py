"""Packs files into an archive, the same bytes for the same contents: a .zip for a Windows program, a .tar.gz for any other.

usage: deploy/pack.py NAME TIME FILE...

TIME is the time that the files bear, in seconds since 1970. Prints the archive's path.
"""

import gzip
import io
import pathlib
import sys
import tarfile
import time
import zipfile


def mode(file):
    return 0o644 if file.name == "LICENSE" else 0o755


def pack_tar(path, moment, files):
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in files:
            entry = tarfile.TarInfo(file.name)
            contents = file.read_bytes()
            entry.size, entry.mode, entry.mtime = len(contents), mode(file), moment
            archive.addfile(entry, io.BytesIO(contents))


def pack_zip(path, moment, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.name, time.gmtime(moment)[:6])
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, mode(file) << 16
            archive.writestr(entry, file.read_bytes())


def main():
    name, moment, files = sys.argv[1], int(sys.argv[2]), [pathlib.Path(file) for file in sys.argv[3:]]
    windows = any(file.suffix == ".exe" for file in files)
    path = name + (".zip" if windows else ".tar.gz")
    (pack_zip if windows else pack_tar)(path, moment, files)
    print(path)


if __name__ == "__main__":
    main()
