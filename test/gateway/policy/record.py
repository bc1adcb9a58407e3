"""Evaluates the rules that cases.ts prints with oslo.policy, and prints one line of JSON for each
rule, with one letter for each world.

T: allowed, F: denied, E: oslo.policy raised an exception.
"""
import json
import logging
import sys

from oslo_config import cfg
from oslo_policy import policy

logging.disable(logging.CRITICAL)


def answer(rule, world):
    enforcer = policy.Enforcer(cfg.ConfigOpts(), use_conf=False)
    rules = {**world["rules"], "asked": rule}
    try:
        enforcer.set_rules(policy.Rules.from_dict(rules, "default"), use_conf=False)
        return "T" if enforcer.enforce("asked", world["target"], dict(world["creds"])) else "F"
    except Exception:
        return "E"


cases = json.load(sys.stdin)
for rule in cases["rules"]:
    answers = "".join(answer(rule, world) for world in cases["worlds"])
    print(json.dumps([rule, answers], separators=(",", ":"), ensure_ascii=False))
