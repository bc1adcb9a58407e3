/**
 * The ports over real Keystone, Barbican and Manila: their contracts and provider-specific
 * behavior.
 */
import { describe } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import { keystoneSession } from "#adapters/keystone/session.ts"
import { sharesManila } from "#adapters/share-protection/shares/manila.ts"
import { trustsKeystone } from "#adapters/share-protection/trusts-keystone.ts"
import { vaultBarbican } from "#adapters/share-protection/vault-barbican.ts"
import type { Settings } from "#schemas/settings.ts"
import { ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import { type SharePlace, sharesContract } from "../../../contract/share-protection/shares.ts"
import {
  type TrustOptions,
  type TrustPlace,
  trustsContract,
} from "../../../contract/share-protection/trusts.ts"
import { type VaultPlace, vaultContract } from "../../../contract/share-protection/vault.ts"
import { service_password } from "../../../world/programs/openstack/configuration.ts"
import {
  assign,
  deleteTrust,
  makeExpiredTrust,
  makeShare,
  makeTrust,
  putSecret,
  unexport,
  validate,
} from "../../../world/programs/openstack/tenants.ts"
import { describeOpenstack, Openstack } from "../../../world/programs/openstack.ts"
import { given } from "../../../world/settings-given.ts"

const settingsOf = ({ auth_url }: Openstack["Service"], manila: Partial<Settings["manila"]> = {}) =>
  given({
    identity: { kind: "keystone" },
    keystone_authtoken: {
      auth_url,
      username: "svcprotect",
      password: Redacted.make(service_password),
    },
    manila: { mount: "local", ...manila },
  })

const ports = (settings: Settings) =>
  Layer.mergeAll(trustsKeystone, vaultBarbican, sharesManila(settings.manila)).pipe(
    Layer.provideMerge(keystoneSession(settings)),
  )

const projectsOf = ({ seed }: Openstack["Service"]) => ({
  one: ProjectId.make(seed.projects["tenant-a"] ?? ""),
  other: ProjectId.make(seed.projects["tenant-b"] ?? ""),
})

const projects = { one: "tenant-a", other: "tenant-b" } as const
/** The users and their projects. */
const members = { one: ["alice", "tenant-a"], other: ["bob", "tenant-b"] } as const

type It = Parameters<Parameters<typeof describeOpenstack>[1]>[0]

describeOpenstack("OpenStack", (it) => {
  describe("trusts of Keystone", () => trustsTests(it))
  describe("secrets of Barbican", () => secretsTests(it))
  describe("shares of Manila", () => sharesTests(it))
})

const trustsTests = (it: It) => {
  const place = Effect.gen(function* () {
    const cloud = yield* Openstack
    const { seed } = cloud
    const role = { user: "alice", project: "tenant-a", role: "member" }
    const answer: TrustPlace = {
      trusts: yield* Trusts,
      projects: projectsOf(cloud),
      users: { alice: seed.users.alice ?? "", bob: seed.users.bob ?? "" },
      create: ({ project = "one", trustee = "us", ...options }: TrustOptions = {}) =>
        makeTrust(cloud, {
          ...options,
          project: projects[project],
          trustee: trustee === "us" ? "svcprotect" : "operator",
        }),
      createExpired: makeExpiredTrust(cloud),
      revoke: (trust_id) => deleteTrust(cloud, trust_id),
      takeRole: assign(cloud, "DELETE", role),
      giveRole: assign(cloud, "PUT", role),
      projectOf: ({ token }) =>
        Effect.map(validate(cloud, Redacted.value(token)), ({ status, body }) =>
          status === 200 ? body.token.project.id : undefined,
        ),
    }
    return answer
  })

  trustsContract((name, body) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        const known = yield* Layer.build(ports(settingsOf(yield* Openstack)))
        yield* Effect.provideContext(Effect.flatMap(place, body), known)
      }).pipe(Effect.scoped),
    ),
  )
}

const secretsTests = (it: It) => {
  const place = Effect.gen(function* () {
    const cloud = yield* Openstack
    const trusts = yield* Trusts
    const trust = (project: "one" | "other") => {
      const [trustor, name] = members[project]
      return makeTrust(cloud, { trustor, project: name })
    }
    const answer: VaultPlace = {
      vault: yield* Vault,
      delegation: (project) => Effect.flatMap(trust(project), trusts.redeem),
      revoked: Effect.gen(function* () {
        const trust_id = yield* trust("one")
        const delegation = yield* trusts.redeem(trust_id)
        yield* deleteTrust(cloud, trust_id)
        return delegation
      }),
      put: (project, payload, kind) => putSecret(cloud, members[project], payload, kind),
    }
    return answer
  })

  vaultContract((name, body) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        const known = yield* Layer.build(ports(settingsOf(yield* Openstack)))
        yield* Effect.provideContext(Effect.flatMap(place, body), known)
      }).pipe(Effect.scoped),
    ),
  )
}

const sharesTests = (it: It) => {
  const place = Effect.gen(function* () {
    const cloud = yield* Openstack
    const trusts = yield* Trusts
    const shares = yield* Shares
    const known = projectsOf(cloud)
    const answer: SharePlace = {
      shares,
      projects: known,
      by: Effect.flatMap(makeTrust(cloud), trusts.redeem),
      make: Effect.fnUntraced(function* (files, { project = "one", snapshots = true } = {}) {
        const [user, name] = members[project]
        const type = snapshots ? "default" : "plain"
        const id = yield* makeShare(cloud, files, { user, project: name, type })
        const share = yield* shares.find(known[project], ShareId.make(id))
        return share ?? (yield* Effect.die("a share that was made is found"))
      }),
      unexport: ({ id }) => unexport(cloud, id),
    }
    return answer
  })

  sharesContract((name, body) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        const known = yield* Layer.build(ports(settingsOf(yield* Openstack)))
        yield* Effect.provideContext(Effect.flatMap(place, body), known)
      }).pipe(Effect.scoped),
    ),
  )
}
