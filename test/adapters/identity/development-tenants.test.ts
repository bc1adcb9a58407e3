import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Stream } from "effect"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { developmentCredentials } from "#adapters/identity/development-credentials.ts"
import { developmentTenants } from "#adapters/identity/development-tenants.ts"
import { identity, tokenIssuer } from "#adapters/identity/identity.ts"
import { openTokenStore } from "#adapters/identity/token-store.ts"
import { sharesEmbedded } from "#adapters/share-protection/shares/embedded.ts"
import { openTrustStore } from "#adapters/share-protection/trust-store.ts"
import { trustIssuer, trustsEmbedded } from "#adapters/share-protection/trusts-embedded.ts"
import { Identity } from "#gateway/identity.ts"
import { ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import { callerOf, ownTokens } from "../../world/authenticate.ts"
import { given } from "../../world/settings-given.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-tenants-"))
afterAll(() => rmSync(folder, { recursive: true }))
const freshFolder = () => mkdtempSync(join(folder, "data-"))

/** Runs the startup steps. */
const start = Effect.fnUntraced(function* (data_dir: string) {
  const nats = { url: "", user: "", password: "" }
  const tokens = yield* openTokenStore(data_dir)
  const credentials = yield* developmentCredentials(data_dir, tokens, nats)
  const store = yield* openTrustStore(data_dir)
  const root = join(data_dir, "shares")
  yield* developmentTenants(credentials, store, root)
  const trusts = yield* Effect.provide(Trusts, trustsEmbedded(store))
  const shares = yield* Effect.provide(Shares, sharesEmbedded({ root, snapshots: () => true }))
  return { credentials, tokens, store, trusts, shares, root }
})

describe("the first start", () => {
  it.effect("makes the trusts of dev-credentials.json, each its tenant's own", () =>
    Effect.gen(function* () {
      const { credentials, trusts } = yield* start(freshFolder())
      const { tenant, tenant_b } = credentials
      for (const { trust_id, project_id, user_id } of [tenant, tenant_b]) {
        const project = ProjectId.make(project_id)
        yield* trusts.verify(trust_id, { project_id: project, user_id })
        expect((yield* trusts.redeem(trust_id)).project_id).toBe(project_id)
      }
      const other = { project_id: ProjectId.make(tenant.project_id), user_id: tenant_b.user_id }
      yield* Effect.flip(trusts.verify(tenant.trust_id, other))
      yield* Effect.flip(trusts.verify(tenant_b.trust_id, { ...other, user_id: null }))
    }),
  )

  it.effect("makes the shares of dev-credentials.json, with files in them", () =>
    Effect.gen(function* () {
      const { credentials, shares } = yield* start(freshFolder())
      for (const { project_id, share_id } of [credentials.tenant, credentials.tenant_b]) {
        const share = yield* shares.find(ProjectId.make(project_id), ShareId.make(share_id))
        assert.isAbove(share?.size_bytes ?? 0, 70_000)
        const path = yield* shares.pathOf(share ?? assert.fail("no share"))
        const names = readdirSync(path, { recursive: true, encoding: "utf8" })
        for (const name of ["README.txt", "tables/temperatures.csv", "pictures/carpet.pgm"]) {
          assert.include(names, name)
          assert.isNotEmpty(readFileSync(join(path, name)))
        }
        const picture = readFileSync(join(path, "pictures/carpet.pgm"))
        expect(picture.subarray(0, 15).toString()).toBe("P5 256 256 255\n")
        expect(picture.length).toBe(15 + 256 * 256)
      }
      expect((yield* Stream.runCollect(shares.list)).length).toBe(2)
    }),
  )
})

describe("a later start", () => {
  it.effect("changes no existing tenant, and restores no deleted one", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const first = yield* start(data_dir)
      const { tenant, tenant_b } = first.credentials
      const path = join(first.root, tenant.project_id, tenant.share_id)
      writeFileSync(join(path, "README.txt"), "mine")
      rmSync(join(first.root, tenant_b.project_id, tenant_b.share_id), { recursive: true })
      yield* trustIssuer(first.store).revoke(tenant_b.trust_id)

      const second = yield* start(data_dir)
      expect(readFileSync(join(path, "README.txt"), "utf8")).toBe("mine")
      expect((yield* Stream.runCollect(second.shares.list)).length).toBe(1)
      yield* second.trusts.redeem(tenant.trust_id)
      yield* Effect.flip(second.trusts.redeem(tenant_b.trust_id))
      expect(yield* second.trusts.service).toEqual(yield* first.trusts.service)
    }),
  )

  it.effect("makes them for credentials that an earlier version wrote", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      yield* start(data_dir)
      rmSync(join(data_dir, "identity", "trusts.json"))
      rmSync(join(data_dir, "shares"), { recursive: true })
      const { credentials, trusts, shares } = yield* start(data_dir)
      yield* trusts.redeem(credentials.tenant.trust_id)
      expect((yield* Stream.runCollect(shares.list)).length).toBe(2)
    }),
  )

  it.effect("says so where it cannot make a share", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      writeFileSync(join(data_dir, "shares"), "in the way")
      const { message } = yield* Effect.flip(start(data_dir))
      expect(message).toContain(`cannot create a share in ${join(data_dir, "shares")}: ENOTDIR`)
    }),
  )
})

describe("the embedded identity", () => {
  it.effect("has every project and user in the domain of the development domain owner", () =>
    Effect.gen(function* () {
      const { credentials, tokens } = yield* start(freshFolder())
      const services = yield* Layer.build(identity(given({}), ownTokens(tokens), credentials))
      const { authenticate } = Context.get(services, Identity)
      const { domain_id } = credentials.domain_owner
      const homes = (token: string) =>
        Effect.map(callerOf(authenticate, token), (caller) => [
          caller.project_domain_id,
          caller.user_domain_id,
          caller.domain_id,
        ])
      const issued = (grant: object) =>
        Effect.map(tokenIssuer(tokens).issue({ scopes: [], roles: [], ...grant }), Redacted.value)
      const { tenant, admin, domain_owner } = credentials
      expect(yield* homes(tenant.token)).toEqual([domain_id, domain_id, undefined])
      expect(yield* homes(admin.token)).toEqual([undefined, undefined, undefined])
      expect(yield* homes(domain_owner.token)).toEqual([undefined, undefined, domain_id])
      const of_project = yield* issued({ project_id: "p" })
      expect(yield* homes(of_project)).toEqual([domain_id, undefined, undefined])
      const of_domain = yield* issued({ domain_id: "d" })
      expect(yield* homes(of_domain)).toEqual([undefined, undefined, "d"])
    }),
  )
})
