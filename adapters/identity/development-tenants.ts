/**
 * Creates the resources of development tenants: a valid trust and a share with files.
 *
 * Source: decisions, "development principals" and "shares".
 */
import { lstat, mkdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import type { Principals } from "#adapters/identity/development-credentials.ts"
import { unavailable } from "#adapters/identity/token-store.ts"
import type { TrustStore } from "#adapters/share-protection/trust-store.ts"
import { addTrust } from "#adapters/share-protection/trusts-embedded.ts"
import { causeText } from "#schemas/cause-text.ts"

type Tenant = Principals["tenant"]

/**
 * Creates trusts that the store has never seen, and shares for tenants without a folder, so that
 * revoked or removed ones are not recreated.
 */
export const developmentTenants = Effect.fnUntraced(function* (
  { tenant, tenant_b }: Pick<Principals, "tenant" | "tenant_b">,
  trusts: TrustStore,
  shares_root: string,
) {
  for (const one of [tenant, tenant_b]) {
    yield* makeTrust(one, trusts)
    yield* makeShare(one, shares_root)
  }
})

const makeTrust = ({ trust_id, user_id, project_id }: Tenant, trusts: TrustStore) =>
  trusts.find(trust_id) === undefined
    ? addTrust(trusts, trust_id, { project_id, user_id, roles: ["member"] })
    : Effect.void

const makeShare = ({ project_id, share_id }: Tenant, shares_root: string) =>
  Effect.tryPromise({
    try: async () => {
      const project = join(shares_root, project_id)
      const exists = await lstat(project).then(
        () => true,
        () => false,
      )
      if (exists) return
      for (const [name, bytes] of files) {
        const path = join(project, share_id, name)
        await mkdir(dirname(path), { recursive: true, mode: 0o700 })
        await writeFile(path, bytes)
      }
    },
    catch: (cause) => {
      const reason = causeText(cause)
      return unavailable({ message: `cannot create a share in ${shares_root}: ${reason}` })
    },
  })

const readme = `This folder is a share. Put files into it, back it up, restore it.

Each sibling folder named by a UUID is another share of the same project.
`

const rows = Array.from({ length: 1000 }, (_, n) => `${n},${(Math.sin(n / 50) * 20).toFixed(2)}`)

/** Width and height of the image in pixels. */
const side = 256
const pixels = Uint8Array.from({ length: side * side }, (_, n) => (n % side) ^ Math.floor(n / side))

const files: ReadonlyArray<readonly [name: string, bytes: string | Uint8Array]> = [
  ["README.txt", readme],
  ["tables/temperatures.csv", `minute,celsius\n${rows.join("\n")}\n`],
  ["pictures/carpet.pgm", Buffer.concat([Buffer.from(`P5 ${side} ${side} 255\n`), pixels])],
]
