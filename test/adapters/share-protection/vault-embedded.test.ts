import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { secretIdOf, Vault } from "#actors/share-protection/ports/vault.ts"
import { openTrustStore } from "#adapters/share-protection/trust-store.ts"
import {
  inspector,
  trustIssuer,
  trustsEmbedded,
} from "#adapters/share-protection/trusts-embedded.ts"
import {
  openVault,
  secretKeeper,
  storeSecret,
  vaultEmbedded,
} from "#adapters/share-protection/vault-embedded.ts"
import { SecretKeeper } from "#gateway/identity.ts"
import { SecretRequest, secret_bytes_max } from "#schemas/secret.ts"
import { SecretRef } from "#schemas/share-protection/text.ts"
import { type VaultPlace, vaultContract } from "../../contract/share-protection/vault.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-vault-"))
afterAll(() => rmSync(folder, { recursive: true }))
const freshFolder = () => mkdtempSync(join(folder, "data-"))

const open = Effect.fnUntraced(function* (data_dir: string) {
  const files = yield* openVault(data_dir)
  const store = yield* openTrustStore(data_dir)
  const services = yield* Layer.build(
    Layer.merge(vaultEmbedded(files, inspector(store)), trustsEmbedded(store)),
  )
  const trusts = Context.get(services, Trusts)
  const issuer = trustIssuer(store)
  const trust = (project: string) => issuer.issue({ project_id: project, roles: ["member"] })
  const place: VaultPlace = {
    vault: Context.get(services, Vault),
    delegation: (project) => Effect.flatMap(trust(project), trusts.redeem),
    revoked: Effect.gen(function* () {
      const trust_id = yield* trust("one")
      const delegation = yield* trusts.redeem(trust_id)
      yield* issuer.revoke(trust_id)
      return delegation
    }),
    put: (project_id, payload) => storeSecret(files, { project_id, name: "", payload }),
  }
  return { place, files, keeper: Context.get(services, SecretKeeper) }
})

const place = Effect.map(
  Effect.suspend(() => open(freshFolder())),
  ({ place }) => place,
)

describe("the embedded vault", () => {
  vaultContract((name, body) => it.effect(name, () => Effect.scoped(Effect.flatMap(place, body))))

  const filesIn = (path: string) =>
    readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())

  it.effect("keeps secrets sealed, each in a private file, over a restart", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const first = yield* open(data_dir)
      const by = yield* first.place.delegation("one")
      const payload = Redacted.make("hunter2-hunter2")
      const href = yield* first.place.vault.store(by, { name: "a", payload })
      const files = filesIn(join(data_dir, "vault"))
      expect(files.length).toBe(2)
      for (const { parentPath, name } of files) {
        const path = join(parentPath, name)
        expect(statSync(path).mode & 0o777).toBe(0o600)
        expect(statSync(parentPath).mode & 0o777).toBe(0o700)
        const text = readFileSync(path, "latin1")
        for (const form of ["utf8", "base64", "hex"] as const) {
          const encoded = Buffer.from("hunter2-hunter2").toString(form).replace(/=+$/, "")
          assert.notInclude(text, encoded)
        }
      }
      const { place } = yield* open(data_dir)
      expect(Redacted.value(yield* place.vault.read(by, href))).toBe("hunter2-hunter2")
    }),
  )

  it.effect("seals the same payload differently each time", () =>
    Effect.gen(function* () {
      const { files } = yield* open(freshFolder())
      const payload = Buffer.from("x".repeat(64))
      for (let n = 0; n < 2; n++)
        yield* storeSecret(files, { project_id: "one", name: "", payload })
      const [a, b] = readdirSync(files.folder).map((name) =>
        JSON.parse(readFileSync(join(files.folder, name), "utf8")),
      )
      assert.notStrictEqual(a.nonce, b.nonce)
      assert.notStrictEqual(a.payload, b.payload)
    }),
  )

  it.effect("gives an href of the form that document 2 knows, and that leads nowhere", () =>
    Effect.gen(function* () {
      const { keeper } = yield* open(freshFolder())
      const href = yield* keeper.put({ project_id: "one", payload: Redacted.make("s") })
      assert.isTrue(Schema.is(SecretRef)(href))
      assert.isTrue(new URL(href).hostname.endsWith(".invalid"))
    }),
  )

  it.effect("takes from an operator what a tenant's trust then reads", () =>
    Effect.gen(function* () {
      const { place, keeper } = yield* open(freshFolder())
      const request = { project_id: "one", name: "key", payload: Redacted.make("s") }
      const href = yield* keeper.put(request)
      const by = yield* place.delegation("one")
      expect(Redacted.value(yield* place.vault.read(by, href))).toBe("s")
      expect(yield* place.vault.find(by, "key")).toBe(href)
      yield* Effect.flip(place.vault.read(yield* place.delegation("other"), href))
    }),
  )

  it.effect("detects changed, moved and renamed files", () =>
    Effect.gen(function* () {
      const { place, files } = yield* open(freshFolder())
      const by = yield* place.delegation("one")
      const thief = yield* place.delegation("other")
      const payload = Buffer.from("secret of one")
      const href = yield* storeSecret(files, { project_id: "one", name: "", payload })
      const path = join(files.folder, secretIdOf(href) ?? "")
      const sealed = JSON.parse(readFileSync(path, "utf8"))
      const flipped = Buffer.from(sealed.payload, "base64")
      flipped[0] = (flipped[0] ?? 0) ^ 1
      const changes = [
        [thief, { project_id: "other" }],
        [by, { payload: flipped.toString("base64") }],
        [by, { name: "b" }],
        [by, { tag: Buffer.from(sealed.tag, "base64").subarray(0, 12).toString("base64") }],
        [by, { nonce: "" }],
        [by, { version: 2 }],
      ] as const
      for (const [who, change] of changes) {
        writeFileSync(path, JSON.stringify({ ...sealed, ...change }))
        const error = yield* Effect.flip(place.vault.read(who, href))
        expect(error.code).toBe("svc.backend_unavailable")
        expect(error.detail).toMatch(/^Secret [0-9a-f-]{36} is damaged\.$/)
      }
      writeFileSync(path, JSON.stringify(sealed))
      const other = href.replace(/.$/, (last) => (last === "0" ? "1" : "0"))
      renameSync(path, join(files.folder, secretIdOf(other) ?? ""))
      const moved = yield* Effect.flip(place.vault.read(by, other))
      expect(moved.code).toBe("svc.backend_unavailable")
    }),
  )

  it.effect("does not open with another key, nor make one where secrets are", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const { files } = yield* open(data_dir)
      yield* storeSecret(files, { project_id: "one", name: "", payload: Buffer.from("s") })
      const path = join(data_dir, "vault", "key")
      const key = readFileSync(path, "utf8")
      const refusal = () => Effect.map(Effect.flip(openVault(data_dir)), ({ message }) => message)
      writeFileSync(path, key.slice(1))
      expect(yield* refusal()).toBe(`${path} is damaged: secrets cannot be decrypted without it`)
      rmSync(path)
      expect(yield* refusal()).toBe(`${path} is missing: secrets cannot be decrypted without it`)
      writeFileSync(path, key)
      yield* openVault(data_dir)
    }),
  )

  it.effect("reveals no secret in an error, even if the disk fails", () =>
    Effect.gen(function* () {
      const { place, files } = yield* open(freshFolder())
      const by = yield* place.delegation("one")
      rmSync(files.folder, { recursive: true, force: true })
      writeFileSync(files.folder, "a file where the folder should be")
      const payload = Redacted.make("hunter2")
      const late = yield* Effect.flip(place.vault.store(by, { name: "a", payload }))
      expect(late.code).toBe("svc.backend_unavailable")
      assert.notInclude(JSON.stringify(late), "hunter2")
      const put = yield* Effect.flip(secretKeeper(files).put({ project_id: "one", payload }))
      assert.notInclude(put.message, "hunter2")
    }),
  )
})

describe("a secret that an operator brings", () => {
  const decode = Schema.decodeUnknownEffect(SecretRequest)
  const refusal = (payload: unknown) =>
    Effect.map(Effect.flip(decode({ project_id: "p", payload })), String)

  it.effect("has 1 to 20,000 bytes", () =>
    Effect.gen(function* () {
      for (const payload of ["x", "k".repeat(secret_bytes_max), "ö".repeat(secret_bytes_max / 2)]) {
        const request = yield* decode({ project_id: "p", payload })
        expect(Redacted.value(request.payload)).toBe(payload)
      }
      for (const payload of ["", "k".repeat(secret_bytes_max + 1), "ö".repeat(10_001)]) {
        yield* refusal(payload)
      }
    }),
  )

  it.effect("does not appear in the error about it", () =>
    Effect.gen(function* () {
      for (const payload of ["hunter2".repeat(5000), { hunter2: 1 }, ["hunter2"]]) {
        assert.notInclude(yield* refusal(payload), "hunter2")
      }
    }),
  )
})
