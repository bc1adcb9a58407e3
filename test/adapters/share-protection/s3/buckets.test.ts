import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import {
  type Asked,
  buckets,
  failing,
  hasty,
  hasty_ms,
  reachFailure,
  s3Error,
  s3Fake,
  saying,
} from "../../../world/share-protection/s3-fake.ts"

const isDelete = ({ method, url }: Asked) => method === "DELETE" && url.includes("versionId=")
const isLockedPut = ({ headers }: Asked) => headers["x-amz-object-lock-mode"] !== undefined

describe("a preflight over S3", () => {
  it.live("finds a bucket good, and asks with a lock of a minute", () =>
    Effect.gen(function* () {
      const { bucket, requests } = yield* s3Fake()
      const { preflight } = yield* buckets
      const before = Date.now()
      const found = yield* preflight(bucket, { shape: "B" })
      assert.deepInclude(found, { object_lock: true, versioning: true, lifecycle: true })
      const locked = requests.find(isLockedPut)
      assert.equal(locked?.headers["x-amz-object-lock-mode"], "COMPLIANCE")
      const until = Date.parse(String(locked?.headers["x-amz-object-lock-retain-until-date"]))
      assert.closeTo(until, before + 60_000, 5_000)
      for (const { url } of requests.filter(({ method }) => method === "PUT")) {
        assert.match(url, /^\/bucket\/almanac\/canary\//)
      }
    }),
  )

  it.live("names the part that does not respond", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake()
      const at = (endpoint: string) => failing({ ...bucket, endpoint })
      const begin = "reachability: the S3 service"
      assert.equal(
        yield* at("http://s3.nowhere.invalid"),
        `${begin} has a name that cannot be resolved (ENOTFOUND).`,
      )
      assert.equal(yield* at("http://127.0.0.1:1"), `${begin} rejects connections (ECONNREFUSED).`)
      assert.equal(
        yield* at(bucket.endpoint.replace("http", "https")),
        `${begin} does not speak TLS (EPROTO).`,
      )
    }),
  )

  it.live("gives up on a server that hangs, and closes the connection", () =>
    Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const { bucket } = yield* s3Fake({
        instead: (_asked, response) => {
          response.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
          return true
        },
      })
      const began = performance.now()
      const detail = yield* failing(bucket, hasty)
      assert.isBelow(performance.now() - began, hasty_ms / 2)
      assert.match(detail, /^reachability: the S3 service does not respond in time/)
      yield* Deferred.await(closed)
    }),
  )

  it.live("gives up on an answer that stops halfway", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake({
        instead: (_asked, response) => {
          response.writeHead(200).write("<ListBucketResult>")
          return true
        },
      })
      const began = performance.now()
      assert.instanceOf(yield* reachFailure(bucket, hasty), BackendUnavailable)
      assert.isBelow(performance.now() - began, hasty_ms / 2)
    }),
  )

  it.live("gives up on an answer without an end", () =>
    Effect.gen(function* () {
      let written = 0
      const { bucket } = yield* s3Fake({
        instead: (_asked, response) => {
          const part = Buffer.alloc(1_048_576, " ")
          const more = () => {
            while (!response.destroyed && response.write(part)) written += part.length
          }
          response.on("drain", more)
          more()
          return true
        },
      })
      const { detail } = yield* reachFailure(bucket)
      assert.equal(detail, "The S3 service returned a response that is too long (AnswerTooLong).")
      assert.isBelow(written, 200_000_000)
    }),
  )

  it.live("detects a server that is not S3", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake({
        instead: (_asked, response) => {
          response.end("<html><body>It works!</body></html>")
          return true
        },
      })
      const why = "the S3 service returned different bytes than were written."
      assert.equal(yield* failing(bucket), `read_write: ${why}`)
    }),
  )

  it.live("follows no redirect", () =>
    Effect.gen(function* () {
      const elsewhere = yield* s3Fake()
      for (const status of [301, 302, 307]) {
        const { bucket } = yield* s3Fake({
          instead: ({ url }, response) => {
            const location = `${elsewhere.bucket.endpoint}${url}`
            response.writeHead(status, { location, "x-amz-bucket-region": "elsewhere" }).end()
            return true
          },
        })
        const detail = yield* failing(bucket)
        const why = `the S3 service redirects to another address, which is not followed (${status}`
        assert.isTrue(detail.startsWith(`read_write: ${why}`), detail)
      }
      assert.deepEqual(elsewhere.requests, [])
    }),
  )

  it.live("is not taken in by a lock that does not hold", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake({
        instead: (request, response) => {
          if (isDelete(request)) response.writeHead(204).end()
          return isDelete(request)
        },
      })
      assert.equal(yield* failing(bucket), "object_lock: a locked object could be deleted.")
    }),
  )

  it.live("is not taken in by keys that may remove nothing", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake({
        instead: ({ method, headers, url }, response) => {
          if (method === "HEAD") response.writeHead(200).end()
          if (isDelete({ method, headers, url, host: "" })) s3Error(response, 403, "AccessDenied")
          return method === "HEAD" || isDelete({ method, headers, url, host: "" })
        },
      })
      assert.equal(yield* failing(bucket), "object_lock: a locked object does not report its lock.")
    }),
  )

  it.live("distinguishes a failing service from an object lock", () =>
    Effect.gen(function* () {
      const { bucket, requests } = yield* s3Fake({
        instead: (one, response) => {
          if (isDelete(one)) s3Error(response, 503, "SlowDown")
          return isDelete(one)
        },
      })
      const why = "the S3 service returned an error (503 SlowDown)"
      assert.equal(yield* failing(bucket), `object_lock: ${why}.`)
      // Two attempts for the canary without a lock, and two for the locked one.
      assert.lengthOf(requests.filter(isDelete), 4)
    }),
  )

  it.live("wants versions for Shape B by themselves", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake({
        instead: saying("versioning", "<VersioningConfiguration/>"),
      })
      assert.equal(yield* failing(bucket), "versioning: the bucket keeps no versions.")
      const { preflight } = yield* buckets
      assert.deepInclude(yield* preflight(bucket, { shape: "A" }), { versioning: false })
    }),
  )

  it.live("names a way of addressing that the other would do for", () =>
    Effect.gen(function* () {
      const { bucket } = yield* s3Fake()
      const why = "the S3 service accepts this bucket only with addressing_mode path."
      const detail = yield* failing({ ...bucket, addressing_mode: "virtual" })
      assert.equal(detail, `addressing_style: ${why}`)
    }),
  )
})

describe("rules that let objects expire", () => {
  const rule = (inner: string, status = "Enabled") =>
    `<LifecycleConfiguration><Rule><ID>r1</ID><Status>${status}</Status>${inner}` +
    "</Rule></LifecycleConfiguration>"
  const days = "<Expiration><Days>3</Days></Expiration>"
  const filter = (prefix: string) => `<Filter><Prefix>${prefix}</Prefix></Filter>`

  const refused = [
    ["of all objects", rule(filter("") + days)],
    ["of all objects, in the old way", rule(`<Prefix></Prefix>${days}`)],
    ["of the data", rule(filter("data/") + days)],
    ["of some of the data", rule(filter("data/0") + days)],
    ["of what begins like the data", rule(filter("da") + days)],
    [
      "of objects with a tag",
      rule(`<Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter>${days}`),
    ],
    [
      "of old versions",
      rule(
        "<NoncurrentVersionExpiration><NoncurrentDays>9</NoncurrentDays>" +
          "</NoncurrentVersionExpiration>",
      ),
    ],
  ] as const

  const taken = [
    ["that is off", rule(filter("") + days, "Disabled")],
    ["of what is no repository's", rule(filter("tmp/") + days)],
    [
      "for uploads that were given up",
      rule(
        "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation>" +
          "</AbortIncompleteMultipartUpload>",
      ),
    ],
    [
      "for marks alone",
      rule("<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"),
    ],
  ] as const

  for (const [what, text] of refused) {
    it.live(`are refused: one ${what}`, () =>
      Effect.gen(function* () {
        const { bucket } = yield* s3Fake({ instead: saying("lifecycle", text) })
        assert.equal(yield* failing(bucket), 'lifecycle: the rule "r1" lets objects expire.')
      }),
    )
  }

  for (const [what, text] of taken) {
    it.live(`is permitted: one ${what}`, () =>
      Effect.gen(function* () {
        const { bucket } = yield* s3Fake({ instead: saying("lifecycle", text) })
        const { preflight } = yield* buckets
        assert.isTrue((yield* preflight(bucket, { shape: "B" })).lifecycle)
      }),
    )
  }
})
