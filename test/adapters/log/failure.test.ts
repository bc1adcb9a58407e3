import { assert, describe, it } from "@effect/vitest"
import { JetStreamApiError } from "@nats-io/jetstream"
import {
  ClosedConnectionError,
  DrainingConnectionError,
  InvalidArgumentError,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node"
import { isAbsent, isTransient, LinkLost } from "#bus"
import { appendFailure, isRefused } from "#journal"

const api = (err_code: number, code = 400, description = "said") =>
  new JetStreamApiError({ err_code, code, description })

const notEnabled = Object.assign(new Error("jetstream is not enabled"), {
  name: "JetStreamNotEnabled",
})
const noResponders = new RequestError("no responders", {
  cause: new NoRespondersError("commit.a"),
})

const cases = [
  ["wrong last sequence", api(10_071), "VersionConflict"],
  ["wrong last sequence, in a batch", api(10_164), "VersionConflict"],
  ["duplicate message id in a batch", api(10_201), "OutcomeUnknown"],
  ["the batch is too large", api(10_199), "LogUnavailable"],
  ["the batch is incomplete", api(10_176), "LogUnavailable"],
  ["another stream was expected", api(10_060), "LogUnavailable"],
  ["no message found", api(10_037, 404), "LogUnavailable"],
  ["the stream's options are refused", api(10_052, 500), "OutcomeUnknown"],
  ["deleting is denied", api(10_057), "LogUnavailable"],
  ["purging is denied", api(10_110), "LogUnavailable"],
  ["the message is too large", api(10_054), "LogUnavailable"],
  ["the stream is not found", api(10_059, 404), "LogUnavailable"],
  ["insufficient resources", api(10_023, 503), "LogUnavailable"],
  ["insufficient storage", api(10_047, 503), "LogUnavailable"],
  ["no leader of the cluster", api(10_008, 503), "LogUnavailable"],
  ["not enabled for the account", api(10_039, 503), "LogUnavailable"],
  ["the stream is full", api(10_077, 503, "maximum bytes exceeded"), "LogUnavailable"],
  ["the disk fails", api(10_077, 503, "write: input/output error"), "OutcomeUnknown"],
  ["an unknown failure", api(19_999, 500), "OutcomeUnknown"],
  ["no responders", noResponders, "LogUnavailable"],
  ["no responders, bare", new NoRespondersError("commit.a"), "LogUnavailable"],
  ["JetStream is not enabled", notEnabled, "LogUnavailable"],
  ["no answer in time", new TimeoutError(), "OutcomeUnknown"],
  ["the connection is lost meanwhile", new LinkLost({ message: "lost" }), "OutcomeUnknown"],
  ["the connection is closed meanwhile", new RequestError("closed"), "OutcomeUnknown"],
  ["the connection was closed before", new ClosedConnectionError(), "LogUnavailable"],
  ["the connection drains", new DrainingConnectionError(), "LogUnavailable"],
  ["the client refuses to send", new InvalidArgumentError("too large"), "LogUnavailable"],
  ["no permission", new PermissionViolationError("no", "publish", "commit.a"), "LogUnavailable"],
  ["something thrown", "something", "OutcomeUnknown"],
] as const

describe("what the bus says to an append", () => {
  for (const [what, cause, tag] of cases) {
    it(`${what}: ${tag}`, () => assert.strictEqual(appendFailure(cause)._tag, tag))
  }

  it("a group is tried one by one only after an answer that surely stored nothing", () => {
    const refused = cases.filter(([, cause]) => isRefused(cause)).map(([what]) => what)
    assert.include(refused, "wrong last sequence, in a batch")
    assert.include(refused, "the batch is incomplete")
    assert.notInclude(refused, "the disk fails")
    assert.notInclude(refused, "no answer in time")
    assert.notInclude(refused, "the connection drains")
  })

  it("distinguishes missing responders from other failures", () => {
    const absent = cases.filter(([, cause]) => isAbsent(cause)).map(([what]) => what)
    assert.deepEqual(absent, ["no responders", "no responders, bare", "JetStream is not enabled"])
  })

  it("what passes by itself is asked again, and nothing that was decided", () => {
    const passing = cases.filter(([, cause]) => isTransient(cause)).map(([what]) => what)
    assert.deepEqual(passing, [
      "no leader of the cluster",
      "no responders",
      "no responders, bare",
      "JetStream is not enabled",
      "no answer in time",
      "the connection is lost meanwhile",
    ])
  })
})
