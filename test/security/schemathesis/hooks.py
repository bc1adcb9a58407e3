"""Adapts schemathesis to this API: NDJSON bodies, and requests that would have effects outside.

The environment variable ALMANAC_OWN_NODE is the id of the only node of the cluster, and
ALMANAC_KNOWN has values by the names of fields that refer to something that exists, as JSON.
"""

import base64
import itertools
import json
import os
import re

import schemathesis
from hypothesis import strategies

OWN_NODE = os.environ["ALMANAC_OWN_NODE"]
KNOWN = json.loads(os.environ["ALMANAC_KNOWN"])
KEYS = itertools.count()
HOST = re.compile(r"^(https?://[A-Za-z0-9.-]+)")
# One grey pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
schemathesis.openapi.media_type("image/png", strategies.just(PNG))


@schemathesis.serializer("application/x-ndjson")
def to_line(context, value):
    """The document describes one line; a generated body is one line."""
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"


@schemathesis.deserializer("application/x-ndjson")
def first_line(context, response):
    """The first line; without one there is nothing to compare with the schema of a line."""
    contents = context.operation.definition.raw["responses"]["200"]["content"]
    if contents["application/x-ndjson"]["schema"].get("type") == "string":
        return response.content.decode()
    lines = response.content.splitlines()
    if not lines:
        raise NotImplementedError
    return json.loads(lines[0])


def without_effects(value):
    """Replaces the hosts of URLs by ones that do not exist: the server would send to them."""
    if isinstance(value, str):
        return HOST.sub(r"\1.invalid", value)
    if isinstance(value, list):
        return [without_effects(one) for one in value]
    if isinstance(value, dict):
        return {key: without_effects(one) for key, one in value.items()}
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    case.body = without_effects(case.body)
    is_valid = case.meta is not None and case.meta.generation.mode.value == "positive"
    if is_valid and case.method == "POST" and isinstance(case.body, dict):
        case.body = {name: KNOWN.get(name, value) for name, value in case.body.items()}
        # A stream without its last chunk is 500.
        if case.operation.path == "/v1/blobs/stream":
            case.body["final"] = True
    # The same valid key with another body is 422.
    key = case.headers.get("Idempotency-Key")
    if isinstance(key, str) and 0 < len(key) < 200:
        case.headers["Idempotency-Key"] = f"{key}{next(KEYS)}"
    # A node that has left the cluster serves no blobs.
    is_leave = case.operation.path == "/v1/cluster/leave"
    if is_leave and isinstance(case.body, dict) and case.body.get("node_id") == OWN_NODE:
        case.body = {**case.body, "node_id": "other-node"}
