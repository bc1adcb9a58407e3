import { readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Result, Stdio, Stream } from "effect"
import { Command } from "effect/cli"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { denials, Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import { publishInstance } from "#adapters/data-folder/instance-file.ts"
import { lockDataFolder } from "#adapters/data-folder/lock.ts"
import { openTrustStore } from "#adapters/share-protection/trust-store.ts"
import { inspector, trustsEmbedded } from "#adapters/share-protection/trusts-embedded.ts"
import { openVault, vaultEmbedded } from "#adapters/share-protection/vault-embedded.ts"
import { secret } from "#cli/access/secret.ts"
import { trust } from "#cli/access/trust.ts"
import { root } from "#cli/root.ts"
import { appOf } from "#gateway/routes.ts"
import { SecretsGroup, TrustsGroup } from "#gateway/system/apis/credentials.ts"
import { createTrust, putSecret, revokeTrust } from "#gateway/system/credentials.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { serveHttp } from "../world/http.ts"
import { temporaryFolder } from "../world/programs/nats.ts"
import { failing, printed } from "./printed.ts"

const project_id = ProjectId.make("0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e77")

/** The output of a command on this data folder, with these bytes on standard input. */
const verb = (folder: string, args: ReadonlyArray<string>, input: ReadonlyArray<Uint8Array> = []) =>
  printed(
    Effect.result(
      Command.runWith(Command.withSubcommands(root, [secret, trust]), { version: "test" })([
        "--set",
        `data.dir=${folder}`,
        ...args,
      ]),
    ),
  ).pipe(
    Effect.provideService(
      Stdio.Stdio,
      Stdio.make({ ...silent, stdin: Stream.fromIterable(input) }),
    ),
    Effect.provide(NodeServices.layer),
  )

const silent = Effect.runSync(Effect.provide(Stdio.Stdio, Stdio.layerTest({})))

const bytes = (text: string) => new TextEncoder().encode(text)

/** The single output line of a command. */
const line = Effect.fnUntraced(function* (...args: Parameters<typeof verb>) {
  const { value, out } = yield* verb(...args)
  assert.isTrue(Result.isSuccess(value), JSON.stringify(value))
  expect(out.length).toBe(1)
  const [only = ""] = out
  assert.notInclude(only, "\n")
  return only
})

/** The error message of a failed command. */
const failure = Effect.fnUntraced(function* (...args: Parameters<typeof verb>) {
  const { value, out } = yield* verb(...args)
  expect(out).toEqual([])
  return Result.isFailure(value) ? String(value.failure) : assert.fail("it succeeded")
})

/** The embedded identity of a data folder, as a running server loads it. */
const identityOf = Effect.fnUntraced(function* (folder: string) {
  const store = yield* openTrustStore(folder)
  const layer = vaultEmbedded(yield* openVault(folder), inspector(store))
  return yield* Layer.build(Layer.merge(layer, trustsEmbedded(store)))
})

/** Runs the commands, with or without a running server. */
const sendRequest = Effect.fnUntraced(function* (folder: string) {
  const put = ["secret", "put", "--project", project_id]
  const href = yield* line(folder, put, [bytes("wJalr"), bytes("XUtnFEMI\r\n")])
  const named = yield* line(folder, [...put, "--name", "s3"], [bytes("two\nlines\n\n")])
  expect(href).toMatch(/^https:\/\/[\w.]+\/v1\/secrets\/[0-9a-f-]{36}$/)
  const half = bytes("k".repeat(10_000))
  const long = yield* line(folder, put, [half, half, bytes("\r\n")])
  const create = ["trust", "create", "--project", project_id]
  const trust_id = yield* line(folder, create)
  const short = yield* line(folder, [...create, "--user", "u1", "--ttl", "60"])
  const gone = yield* line(folder, [...create, "--role", "member", "--role", "reader"])
  const revoked = yield* verb(folder, ["trust", "revoke", gone])
  expect([Result.isSuccess(revoked.value), revoked.out]).toEqual([true, []])
  const again = yield* verb(folder, ["trust", "revoke", gone])
  expect(failing(again.value)).toEqual([1, `Trust ${gone} does not exist.`])
  for (const input of ["", "\n", "k".repeat(20_001)]) {
    const message = yield* failure(folder, put, [bytes(input)])
    assert.notInclude(message, "kkk")
  }
  assert.include(yield* failure(folder, put, [new Uint8Array([0xff])]), "not UTF-8 text")
  return { href, named, long, trust_id, short, gone }
})

/** Asserts that the service can use what the commands created. */
const used = Effect.fnUntraced(function* (
  services: Context.Context<Trusts | Vault>,
  { href, named, long, trust_id, short, gone }: Effect.Success<ReturnType<typeof sendRequest>>,
) {
  const trusts = Context.get(services, Trusts)
  const vault = Context.get(services, Vault)
  yield* trusts.verify(trust_id, { project_id, user_id: "anybody" })
  const delegation = yield* trusts.redeem(trust_id)
  expect(Redacted.value(yield* vault.read(delegation, href))).toBe("wJalrXUtnFEMI")
  expect(yield* vault.find(delegation, "s3")).toBe(named)
  expect(Redacted.value(yield* vault.read(delegation, named))).toBe("two\nlines\n")
  expect(Redacted.value(yield* vault.read(delegation, long))).toBe("k".repeat(20_000))
  const by = { project_id, user_id: "u1" }
  expect((yield* Effect.flip(trusts.verify(short, by))).detail).toBe(denials.unfit)
  yield* trusts.redeem(short)
  expect((yield* Effect.flip(trusts.redeem(gone))).detail).toBe(denials.gone)
})

const Api = HttpApi.make("operations").add(SecretsGroup, TrustsGroup)
const handlers = Layer.mergeAll(
  HttpApiBuilder.group(Api, "secrets", (group) =>
    group.handle("put", ({ payload }) => putSecret(payload)),
  ),
  HttpApiBuilder.group(Api, "trusts", (group) =>
    group
      .handle("create", ({ payload }) => createTrust(payload))
      .handle("revoke", ({ params }) => revokeTrust(params.trust_id)),
  ),
)

/** A server of these paths, registered as the instance of the data folder. */
const serve = Effect.fnUntraced(function* (folder: string) {
  yield* lockDataFolder(folder)
  const services = yield* identityOf(folder)
  const layer = HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers))
  const served = yield* serveHttp([
    { name: "operations", api: Api, routes: appOf(layer, services) },
  ])
  yield* publishInstance(folder, {
    url: served.url,
    nats: { url: "", user: "", password: Redacted.make("") },
    control_token: Redacted.make("admin"),
    pid: process.pid,
    started_at: "2026-11-20T00:00:00Z",
  })
  return { served, services }
})

describe("the commands secret and trust", () => {
  it.live("work while no server runs, and release the folder", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const made = yield* sendRequest(folder)
      yield* used(yield* identityOf(folder), made)
      expect(readdirSync(folder).toSorted()).toEqual(["identity", "nats", "run", "vault"])
    }).pipe(Effect.scoped),
  )

  it.live("work with a running instance, which locks the folder", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { services, served } = yield* serve(folder)
      yield* used(services, yield* sendRequest(folder))
      assert.notInclude(served.logged.join("\n"), "wJalr")
    }).pipe(Effect.scoped),
  )

  it.live("are for operators only over HTTP, and reveal no secret in an error", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { served } = yield* serve(folder)
      const post = (path: string, token: string, body: unknown) =>
        Effect.promise(async () => {
          const headers = { "x-auth-token": token, "content-type": "application/json" }
          const sent = { method: "POST", headers, body: JSON.stringify(body) }
          const answer = await served.fetch(path, sent)
          return { status: answer.status, text: await answer.text() }
        })
      const request = { project_id, payload: "hunter2" }
      const paths = ["/v1/admin/secrets", "/v1/admin/trusts", "/v1/admin/trusts/t/revoke"]
      for (const path of paths) {
        expect((yield* post(path, "reader", request)).status).toBe(403)
        expect((yield* post(path, "unknown", request)).status).toBe(401)
      }
      const secrets = "/v1/admin/secrets"
      for (const payload of [["hunter2"], { hunter2: 1 }, "hunter2".repeat(5000)]) {
        const answer = yield* post(secrets, "admin", { ...request, payload })
        expect(answer.status).toBe(400)
        assert.notInclude(answer.text, "hunter2")
        expect(JSON.parse(answer.text).code).toBe("svc.validation_error")
      }
      const kept = yield* post(secrets, "admin", request)
      expect(kept.status).toBe(200)
      assert.notInclude(kept.text, "hunter2")
      assert.notInclude(served.logged.join("\n"), "hunter2")
      expect((yield* post("/v1/admin/trusts/none/revoke", "admin", {})).status).toBe(404)
    }).pipe(Effect.scoped),
  )

  for (const args of [
    ["secret", "put"],
    ["trust", "create"],
    ["trust", "revoke"],
  ]) {
    it.effect(`${args.join(" ")} explains itself with an example`, () =>
      Effect.gen(function* () {
        const { out } = yield* verb("/none", [...args, "--help"])
        assert.match(out.join("\n"), new RegExp(`EXAMPLES[^]*almanac ${args.join(" ")} `))
      }),
    )
  }

  const malformed = [
    ["secret", "put"],
    ["secret", "put", "--project", "a.b"],
    ["secret", "put", "--project", "p", "--name", "a\nb"],
    ["trust", "create"],
    ["trust", "create", "--project", "a b"],
    ["trust", "create", "--project", "p", "--ttl", "0"],
    ["trust", "create", "--project", "p", "--role", "a b"],
    ["trust", "revoke"],
    ["trust", "revoke", "../x"],
  ]
  for (const args of malformed) {
    it.live(`refuses ${JSON.stringify(args.join(" "))}, and makes no folder`, () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const { value } = yield* verb(folder, args, [bytes("s")])
        assert.isTrue(Result.isFailure(value))
        expect(readdirSync(folder)).toEqual([])
      }).pipe(Effect.scoped),
    )
  }

  const elsewhere = [
    ["secret put --project p", "openstack secret store"],
    ["trust create --project p", "openstack trust create"],
    ["trust revoke 0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e78", "openstack trust delete"],
  ] as const
  for (const [words, instead] of elsewhere) {
    it.live(`${words} says what does it where the identity is Keystone's`, () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const password_file = join(yield* temporaryFolder, "password")
        writeFileSync(password_file, "secret")
        const cloud = Object.entries({
          "identity.kind": "keystone",
          "keystone_authtoken.username": "almanac",
          "keystone_authtoken.password_file": password_file,
          "keystone_authtoken.auth_url": "http://127.0.0.1:5000/v3",
          "worker.capacity_slots": "2",
          "database.connection": `sqlite:///${folder}/models`,
        }).flatMap(([name, value]) => ["--set", `${name}=${value}`])
        assert.include(yield* failure(folder, [...cloud, ...words.split(" ")]), instead)
        expect(readdirSync(folder)).toEqual([])
      }).pipe(Effect.scoped),
    )
  }
})
