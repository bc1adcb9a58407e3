/** Repeated requests that create credentials, over HTTP. Source: decisions 0180, 0181. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { host } from "#actors/host.ts"
import { retryKey } from "#adapters/identity/repeated-credential.ts"
import { openTrustStore, readTrustStore } from "#adapters/share-protection/trust-store.ts"
import { trustIssuer } from "#adapters/share-protection/trusts-embedded.ts"
import { openVault, secretKeeper } from "#adapters/share-protection/vault-embedded.ts"
import { issuedTokens } from "#adapters/system/issued-tokens.ts"
import { SecretKeeper, TokenIssuer, TrustIssuer } from "#gateway/identity.ts"
import { appOf } from "#gateway/routes.ts"
import { SecretsGroup, Tokens, TrustsGroup } from "#gateway/system/apis/credentials.ts"
import {
  createTrust,
  issueToken,
  putSecret,
  revokeTokens,
  revokeTrust,
} from "#gateway/system/credentials.ts"
import { logMemory } from "#journal"
import { serveHttp } from "../../world/http.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"
import { given } from "../../world/settings-given.ts"

const Api = HttpApi.make("operations").add(Tokens, SecretsGroup, TrustsGroup)
const handlers = Layer.mergeAll(
  HttpApiBuilder.group(Api, "tokens", (group) =>
    group
      .handle("issue", ({ payload }) => issueToken(payload))
      .handle("revoke", ({ params }) => revokeTokens(params.name)),
  ),
  HttpApiBuilder.group(Api, "secrets", (group) =>
    group.handle("put", ({ payload }) => putSecret(payload)),
  ),
  HttpApiBuilder.group(Api, "trusts", (group) =>
    group
      .handle("create", ({ payload }) => createTrust(payload))
      .handle("revoke", ({ params }) => revokeTrust(params.trust_id)),
  ),
)

/** Serves these paths over HTTP with the embedded identity of a data folder. */
const serve = Effect.fnUntraced(function* (dir: string) {
  const { issuer } = yield* issuedTokens(Infinity, yield* retryKey(given({ data: { dir } })))
  const known = Context.make(TokenIssuer, issuer).pipe(
    Context.add(TrustIssuer, trustIssuer(yield* openTrustStore(dir))),
    Context.add(SecretKeeper, secretKeeper(yield* openVault(dir))),
  )
  const routes = appOf(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers)), known)
  const { fetch } = yield* serveHttp([{ name: "operations", api: Api, routes }])
  return (path: string, key: string, body?: object) =>
    Effect.promise(async () => {
      const headers = {
        authorization: "Bearer admin",
        "idempotency-key": key,
        ...(body && { "content-type": "application/json" }),
      }
      const sent = { method: "POST", headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await fetch(`/v1/admin/${path}`, sent)
      return { status: answer.status, body: await answer.json() }
    })
})

const log = Layer.fresh(Layer.provideMerge(host, logMemory))

const made = [
  ["tokens", { name: "ci", scopes: ["blobs:read"], roles: [] }, { roles: ["member"] }],
  ["secrets", { project_id: "p", payload: "hunter2" }, { payload: "another" }],
  ["trusts", { project_id: "p", roles: ["member"] }, { roles: ["reader"] }],
] as const

describe("a credential requested again with its Idempotency-Key", () => {
  for (const [path, body, other] of made) {
    it.live(`of ${path} is the same, and 422 with another body`, () =>
      Effect.gen(function* () {
        const post = yield* serve(yield* temporaryFolder)
        const first = yield* post(path, "once", body)
        assert.equal(first.status, 200)
        const all = yield* Effect.all(
          Array.from({ length: 4 }, () => post(path, "once", body)),
          { concurrency: "unbounded" },
        )
        for (const again of all) assert.deepEqual(again, first)
        const changed = yield* post(path, "once", { ...body, ...other })
        assert.deepEqual([changed.status, changed.body.code], [422, "svc.validation_error"])
        const fresh = yield* post(path, "another", body)
        assert.notDeepEqual(fresh.body, first.body)
      }).pipe(Effect.scoped, Effect.provide(log)),
    )
  }

  it.live("leaves one token, and a repeated revocation counts the same", () =>
    Effect.gen(function* () {
      const post = yield* serve(yield* temporaryFolder)
      const grant = { name: "ci", scopes: ["blobs:read"], roles: [] }
      for (const key of ["one", "one", "two", "two"]) yield* post("tokens", key, grant)
      for (const key of ["end", "end"]) {
        assert.deepEqual(yield* post("tokens/ci/revoke", key), {
          status: 200,
          body: { revoked: 2 },
        })
      }
      assert.equal((yield* post("tokens/ci/revoke", "other")).status, 404)
    }).pipe(Effect.scoped, Effect.provide(log)),
  )

  it.live("leaves one trust, and a revocation is answered alike when it comes again", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const post = yield* serve(folder)
      const request = { project_id: "p", roles: ["member"] }
      for (const key of ["one", "one", "two"]) yield* post("trusts", key, request)
      const { body } = yield* post("trusts", "one", request)
      const path = `trusts/${body.trust_id}/revoke`
      for (const key of ["end", "end"]) {
        const { trust_id } = body
        assert.deepEqual(yield* post(path, key), { status: 200, body: { trust_id } })
      }
      assert.equal((yield* post(path, "other")).status, 404)
      const kept = yield* readTrustStore(folder)
      assert.isNotNull(kept.find(body.trust_id)?.revoked_at)
    }).pipe(Effect.scoped, Effect.provide(log)),
  )
})
