"""Walks all three trees of an ISO image with pycdlib and prints the SHA-256 of each file by tree and path."""

import hashlib
import json
import sys

import pycdlib


class Digest:
    """A file object that only hashes."""

    def __init__(self):
        self.hash = hashlib.sha256()

    def write(self, data):
        self.hash.update(data)


iso = pycdlib.PyCdlib()
iso.open(sys.argv[1])
trees = {}
for tree in ("iso_path", "rr_path", "joliet_path"):
    seen = trees[tree] = {}
    for parent, directories, files in iso.walk(**{tree: "/"}):
        prefix = parent.rstrip("/") + "/"
        for name in directories:
            seen[(prefix + name)[1:]] = "directory"
        for name in files:
            digest = Digest()
            iso.get_file_from_iso_fp(digest, **{tree: prefix + name})
            seen[(prefix + name)[1:]] = digest.hash.hexdigest()
iso.close()
json.dump(trees, sys.stdout)
