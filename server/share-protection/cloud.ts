/**
 * The cloud around this process where it is an OpenStack one: who may ask what is Keystone's to
 * say, and tenants' trusts, secrets and shares are Keystone's, Barbican's and Manila's.
 *
 * Source: document 2 §5; decisions of document 2, identity, secrets, shares.
 */
import { Context, Effect, Layer } from "effect"
import { identityKeystone, type OwnTokens } from "#adapters/identity/identity.ts"
import { policyRules } from "#adapters/identity/policy-file.ts"
import { keystoneSession } from "#adapters/keystone/session.ts"
import { sharesManila } from "#adapters/share-protection/shares/manila.ts"
import { trustsKeystone } from "#adapters/share-protection/trusts-keystone.ts"
import { vaultBarbican } from "#adapters/share-protection/vault-barbican.ts"
import { PolicyRules } from "#gateway/access.ts"
import { IdentityUnavailable, SecretKeeper, TrustIssuer } from "#gateway/identity.ts"
import { defaultRules } from "#gateway/share-protection/default-rules.ts"
import type { Settings } from "#schemas/settings.ts"

/** Trusts, secrets and shares of the cloud, and the session over which they are asked. */
export const cloudTenants = (settings: Settings) =>
  Layer.mergeAll(trustsKeystone, vaultBarbican, sharesManila(settings.manila)).pipe(
    Layer.provideMerge(keystoneSession(settings)),
  )

const theirs = (whose: string, command: string) => () =>
  Effect.fail(
    new IdentityUnavailable({
      message: `${whose}: ask there (${command}), identity.kind is keystone`,
    }),
  )

/** What the embedded identity lets an operator do in a tenant's name, and a cloud nobody. */
const tenantsOwn = Layer.mergeAll(
  Layer.succeed(TrustIssuer, {
    issue: theirs("trusts are Keystone's", "openstack trust create"),
    revoke: theirs("trusts are Keystone's", "openstack trust delete"),
  }),
  Layer.succeed(SecretKeeper, {
    put: theirs("secrets are Barbican's", "openstack secret store"),
  }),
)

/**
 * The same services as those of the embedded identity. Nothing in the cloud is asked yet: what is
 * down at the start is up when it is needed, or is told then. The blob service's tokens are ours.
 */
export const cloud = Effect.fnUntraced(function* (settings: Settings, own: OwnTokens) {
  const { api, policy } = settings
  const rules = yield* policyRules(policy.file, defaultRules(api.shape))
  const tenants = yield* Layer.build(cloudTenants(settings))
  const known = yield* Layer.build(
    Layer.mergeAll(identityKeystone(settings, own), tenantsOwn, Layer.succeed(PolicyRules, rules)),
  ).pipe(Effect.provideContext(tenants))
  return Context.merge(tenants, known)
})
