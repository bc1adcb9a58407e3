#!/usr/bin/env python3
"""Verifies a proof or an export of Almanac's audit log. Requires only Python.

    python3 verify-proof.py proof.json KEY [KEPT]
    python3 verify-proof.py log.ndjson KEY KEPT...

The first form verifies the output of `almanac audit prove`: an aggregate's commits are in the log
of the proof's head. KEPT is a file with a signed head that you kept earlier, for a proof that was
requested with `--kept`.

The second form verifies an export of the whole log by `almanac audit export` (log.ndjson, or
log.ndjson.gz): its first commits match each head that you kept. The operator has therefore not
changed, removed or added any of them since. An export without a kept head proves nothing against
its operator, and is rejected.

KEY is the output of `almanac audit key`, received from the log's owner. If the proof is valid, the
exit code is 0, with a line for each commit of a proof, or for each head of an export: check that
they are as recent as you expect. Otherwise the exit code is 1, with a line that states the fault.

The tree is that of RFC 9162, section 2.1, with SHA-256; the head is a signed note as in C2SP
tlog-checkpoint; the signature is Ed25519, RFC 8032.
"""
import base64
import gzip
import hashlib
import json
import sys

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


class Wrong(Exception):
    pass


def check(good, why):
    if not good:
        raise Wrong(why)


# Ed25519: points as (x, y, z, x*y), section 5.1 of RFC 8032.
def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, p):
    sum_ = (0, 1, 1, 0)
    while n:
        if n & 1:
            sum_ = add(sum_, p)
        p, n = add(p, p), n >> 1
    return sum_


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    check(y < P, "the key or signature is not a valid point")
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    is_valid = (x * x - square) % P == 0 and not (x == 0 and sign)
    check(is_valid, "the key or signature is not a valid point")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signed(key, text, signature):
    r, s = point(signature[:32]), int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % ORDER
    left, right = times(s, BASE), add(r, times(h, point(key)))
    same = all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))
    check(len(signature) == 64 and s < ORDER and same, "the head's signature is wrong")


def head_of(note, verifier):
    """Size and root of a signed head; the verifier is `name+id+base64(1, key)`."""
    name, key_id, marked = verifier.split("+", 2)
    marked = base64.b64decode(marked)
    expected = hashlib.sha256(name.encode() + b"\n" + marked).digest()[:4]
    check(key_id == expected.hex() and marked[0] == 1 and len(marked) == 33, "the key is malformed")
    text, _, signatures = note.partition("\n\n")
    for line in signatures.splitlines():
        dash, signer, data = line.split(" ")
        data = base64.b64decode(data)
        if dash == "\u2014" and signer == name and data[:4] == expected:
            signed(marked[1:], (text + "\n").encode(), data[4:])
            origin, size, root = text.split("\n")[:3]
            check(origin == name, "the head belongs to another log")
            return int(size), base64.b64decode(root)
    raise Wrong("the head is not signed with this key")


def sha256(data):
    return hashlib.sha256(data).digest()


def node(left, right):
    return sha256(b"\1" + left + right)


def included(leaf, index, size, path, root):
    """RFC 9162, section 2.1.3.2."""
    check(index < size, "a commit is beyond the tree")
    last = size - 1
    for step in path:
        check(last > 0, "a path is too long")
        if index & 1 or index == last:
            leaf = node(step, leaf)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            leaf = node(leaf, step)
        index, last = index >> 1, last >> 1
    check(last == 0 and leaf == root, "a commit is not in the tree")


def consistent(first, first_root, second, second_root, path, what):
    """RFC 9162, section 2.1.4.2."""
    check(0 < first <= second, f"{what} is larger than the head")
    if first == second:
        return check(not path and first_root == second_root, f"{what} is not part of the head")
    path = [first_root] + path if first & (first - 1) == 0 else path
    check(path, f"{what} has no path")
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for step in path[1:]:
        check(sn > 0, f"{what} has a path that is too long")
        if fn & 1 or fn == sn:
            fr, sr = node(step, fr), node(step, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node(sr, step)
        fn, sn = fn >> 1, sn >> 1
    check(sn == 0 and fr == first_root and sr == second_root, f"{what} is not part of the head")


def verify(proof, verifier, kept):
    check(proof["format"] == "almanac-audit-proof-1", "the proof has another format")
    check(proof["commits"], "the proof has no commits")
    size, root = head_of(proof["head"], verifier)
    sealed, sealed_root = proof["checkpoint"]["size"], bytes.fromhex(proof["checkpoint"]["root"])
    hashes = lambda texts: [bytes.fromhex(text) for text in texts]
    consistent(sealed, sealed_root, size, root, hashes(proof["consistency"]), "the checkpoint")
    if kept is not None:
        check("kept" in proof, "the proof was not requested with --kept")
        before, before_root = head_of(kept, verifier)
        consistent(before, before_root, size, root, hashes(proof["kept"]["path"]), "the kept head")
    stream, before, prev = proof["aggregate"], 0, sha256(proof["aggregate"].encode()).hex()
    for entry in proof["commits"]:
        position = entry["position"]
        check(position > before, f"the commit at {position} is out of order")
        if "unreadable" in entry:
            stored, line = base64.b64decode(entry["unreadable"]), "unreadable, stored as received"
        else:
            stored, commit = entry["commit"].encode(), json.loads(entry["commit"])
            follows = commit["prev"] == prev
            check(follows, f"the commit at {position} does not follow the previous one")
            types = ", ".join(event["type"] for event in commit["events"])
            line = f"{commit['at']} {types}"
        before, prev = position, sha256(stored).hex()
        leaf = sha256(b"\0" + f"{position} {stream} {prev}".encode())
        included(leaf, position - 1, sealed, hashes(entry["path"]), sealed_root)
        yield f"{position} {stream} {line}"
    yield f"in the first {size} commits of {verifier.split('+')[0]}"


MARK = b',"commit":'


def stored(line, number):
    """Position, stream and hash of an export's line, its `prev` hash, and the stored bytes."""
    try:
        at = line.find(MARK)
        place = json.loads(line if at < 0 else line[:at] + b"}")
        prev = None if at < 0 else json.loads(line[at + len(MARK) : -1])["prev"]
        data = base64.b64decode(place["bytes"]) if at < 0 else line[at + len(MARK) : -1]
        return place["position"], place["stream"], place["hash"], prev, data
    except (LookupError, ValueError, TypeError) as why:
        raise Wrong(f"line {number} is not a line of an export") from why


class Tree:
    """The tree over all leaves so far, as the roots of its perfect subtrees."""

    def __init__(self):
        self.size, self.peaks = 0, []

    def add(self, leaf):
        rest, self.size = self.size, self.size + 1
        while rest & 1:
            leaf, rest = node(self.peaks.pop(), leaf), rest >> 1
        self.peaks.append(leaf)

    def root(self):
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node(peak, root)
        return root


def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        yield from (line.rstrip(b"\n") for line in file)


def verify_export(path, verifier, kept):
    """Verifies every line, the chains, the manifest, and each kept head as a prefix of the log."""
    heads = sorted(head_of(note, verifier) for note in kept)
    check(heads, "an export alone proves nothing: add the files of heads that you kept")
    tree, last, whole, manifest = Tree(), {}, hashlib.sha256(), None
    proven, wrong = 0, None
    for number, line in enumerate(lines_of(path), 1):
        check(manifest is None, f"line {number} is after the manifest")
        if line.startswith(b'{"manifest":'):
            manifest = json.loads(line)
            continue
        whole.update(line + b"\n")
        position, stream, claimed, prev, data = stored(line, number)
        check(position == number, f"line {number} has position {position}: export the whole log")
        found = sha256(data).hex()
        check(found == claimed, f"position {position} does not match its hash")
        before = last.get(stream) or sha256(stream.encode()).hex()
        follows = prev in (None, before)
        check(follows, f"position {position} does not follow its aggregate's previous commit")
        last[stream] = found
        tree.add(sha256(b"\0" + f"{position} {stream} {found}".encode()))
        for size, root in heads:
            if size == tree.size and root != tree.root():
                why = f"is in positions {proven + 1} to {size}: they do not match the kept head"
                raise Wrong(f"the first wrong commit {why}")
            proven = size if size == tree.size else proven
    check(manifest is not None, "the export has no manifest: it is incomplete")
    for size, _ in heads:
        check(size <= tree.size, f"the export ends at {tree.size}, before the kept head of {size}")
    check(manifest["sha256"] == whole.hexdigest(), "the manifest does not match the lines")
    for size, _ in heads:
        yield f"the first {size} of {tree.size} commits match the kept head"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def is_export(path):
    return path.endswith((".ndjson", ".ndjson.gz"))


if __name__ == "__main__":
    try:
        path, key, kept = sys.argv[1], sys.argv[2].strip(), [read(name) for name in sys.argv[3:]]
        if is_export(path):
            lines = verify_export(path, key, kept)
        else:
            lines = verify(json.loads(read(path)), key, kept[0] if kept else None)
        print("\n".join(lines))
    except (Wrong, LookupError, ValueError, TypeError, AttributeError, OSError) as why:
        sys.exit(f"not proven: {why}")
