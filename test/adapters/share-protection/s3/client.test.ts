import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import { Buckets } from "#actors/share-protection/ports/buckets.ts"
import { bucketsS3In } from "#adapters/share-protection/s3/buckets.ts"
import { TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import { certificateText } from "../../../world/certificate.ts"
import {
  buckets,
  failing,
  reachFailure,
  s3Error,
  s3Fake,
  secret_key,
} from "../../../world/share-protection/s3-fake.ts"

describe("a request to S3", () => {
  it.live("says what was refused, in S3's word and none of the endpoint's", () =>
    Effect.gen(function* () {
      const codes = [
        ["SignatureDoesNotMatch", "(403 SignatureDoesNotMatch)"],
        ["ask http://evil.example/ for help", "(403)"],
      ]
      for (const [code = "", message = ""] of codes) {
        const { bucket } = yield* s3Fake({
          instead: (_asked, response) => {
            s3Error(response, 403, code)
            return true
          },
        })
        const failure = yield* reachFailure(bucket)
        assert.instanceOf(failure, TrustAccessDenied)
        assert.equal(failure.detail, `The S3 service denies access ${message}.`)
      }
    }),
  )

  it.live("is made once more after an error of the server", () =>
    Effect.gen(function* () {
      let failures = 0
      const { bucket, requests } = yield* s3Fake({
        instead: (_asked, response) => {
          if (failures++ > 0) return false
          s3Error(response, 503, "SlowDown")
          return true
        },
      })
      const { reach } = yield* buckets
      yield* reach(bucket)
      assert.lengthOf(requests, 2)
    }),
  )

  it.live("is aborted when its caller is interrupted", () =>
    Effect.gen(function* () {
      const [came, closed] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const { bucket } = yield* s3Fake({
        instead: (_asked, response) => {
          Deferred.doneUnsafe(came, Effect.void)
          response.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
          return true
        },
      })
      const { reach } = yield* Effect.provide(
        Buckets,
        bucketsS3In({ connect_ms: 60_000, idle_ms: 60_000, total_ms: 60_000 }),
      )
      const waiting = yield* Effect.forkChild(reach(bucket))
      yield* Deferred.await(came)
      yield* Fiber.interrupt(waiting)
      yield* Deferred.await(closed)
    }),
  )

  it.live("carries only the tenant's keys, regardless of the environment", () =>
    Effect.gen(function* () {
      const { bucket, requests } = yield* s3Fake()
      const { reach } = yield* buckets
      yield* Effect.acquireRelease(
        Effect.sync(() => Object.assign(process.env, foreign)),
        () =>
          Effect.sync(() => {
            for (const name of Object.keys(foreign)) delete process.env[name]
          }),
      )
      yield* reach({ ...bucket, region: "eu-1" })
      const [one] = requests
      assert.match(String(one?.headers.authorization), /Credential=AK\/\d+\/eu-1\/s3\//)
      assert.isUndefined(one?.headers["x-amz-security-token"])
      assert.notInclude(JSON.stringify(requests), secret_key)
    }),
  )
})

/** Variables that an operator's shell may set for other purposes. */
const foreign = {
  AWS_ACCESS_KEY_ID: "AKFOREIGN",
  AWS_SECRET_ACCESS_KEY: "foreign",
  AWS_SESSION_TOKEN: "foreign",
  AWS_REGION: "us-west-2",
  AWS_PROFILE: "nobody",
  AWS_ENDPOINT_URL: "http://127.0.0.1:1",
  AWS_ENDPOINT_URL_S3: "http://127.0.0.1:1",
  AWS_USE_FIPS_ENDPOINT: "true",
  AWS_USE_DUALSTACK_ENDPOINT: "true",
  AWS_MAX_ATTEMPTS: "1",
}

describe("a certificate of S3's", () => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-s3-"))
  afterAll(() => rmSync(folder, { recursive: true }))

  const certificate = (name: string, alternative: string) =>
    certificateText({ folder, name, for: alternative })

  it.live("is trusted by the target's own authority alone", () =>
    Effect.gen(function* () {
      const tls = certificate("s3", "IP:127.0.0.1")
      const { bucket, requests } = yield* s3Fake({ tls })
      const unknown = yield* failing(bucket)
      const begin = "reachability: the S3 service has a certificate that is not trusted"
      assert.equal(unknown, `${begin} (DEPTH_ZERO_SELF_SIGNED_CERT).`)
      const { cert: other } = certificate("other", "IP:127.0.0.1")
      assert.isTrue((yield* failing({ ...bucket, ca_cert: other })).startsWith(begin))
      assert.deepEqual(requests, [])
      const { reach } = yield* buckets
      yield* reach({ ...bucket, ca_cert: tls.cert })
      assert.lengthOf(requests, 1)
    }),
  )

  it.live("of another host is not", () =>
    Effect.gen(function* () {
      const tls = certificate("elsewhere", "DNS:elsewhere.example")
      const { bucket, requests } = yield* s3Fake({ tls })
      const detail = yield* failing({ ...bucket, ca_cert: tls.cert })
      assert.match(detail, /not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)/)
      assert.deepEqual(requests, [])
    }),
  )
})

describe("a secret", () => {
  it.live("is in no failure", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake({
        instead: (_asked, response) => {
          s3Error(response, 403, "AccessDenied")
          return true
        },
      })
      const failure = yield* reachFailure(bucket)
      for (const secret of [bucket.access_key, bucket.secret_key]) {
        assert.notInclude(`${JSON.stringify(failure)} ${failure.stack}`, Redacted.value(secret))
      }
    }),
  )
})
