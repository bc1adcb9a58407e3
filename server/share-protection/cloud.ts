/**
 * The adapters to an OpenStack cloud: Keystone for identity and trusts, Barbican for secrets, and
 * Manila for shares.
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

/** Trusts, secrets and shares of the cloud, and the Keystone session that they use. */
export const cloudTenants = (settings: Settings) =>
  Layer.mergeAll(trustsKeystone, vaultBarbican, sharesManila(settings.manila)).pipe(
    Layer.provideMerge(keystoneSession(settings)),
  )

const unsupported = (owner: string, command: string) => () =>
  Effect.fail(
    new IdentityUnavailable({
      message: `${owner}, because identity.kind is keystone: use \`${command}\``,
    }),
  )

/** Operations on behalf of a tenant, which only the embedded identity supports. */
const tenantsOwn = Layer.mergeAll(
  Layer.succeed(TrustIssuer, {
    issue: unsupported("trusts are managed by Keystone", "openstack trust create"),
    revoke: unsupported("trusts are managed by Keystone", "openstack trust delete"),
  }),
  Layer.succeed(SecretKeeper, {
    put: unsupported("secrets are managed by Barbican", "openstack secret store"),
  }),
)

/**
 * The same services as the embedded identity's. Startup sends no requests to the cloud: outages are
 * reported when a service is needed. Tokens of the blob service are still issued by this program.
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
