/**
 * Real Keystone, Barbican and Manila for tests, from Debian's packages, with SQLite and no message
 * broker. Their databases are created once, and copied for each run.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { layer } from "@effect/vitest"
import Database from "better-sqlite3"
import { Context, Effect, Layer, Schema } from "effect"
import { cacheDirectory } from "../../../launcher/cache.mjs"
import { findTree, trees } from "../../../launcher/trees.mjs"
import { describeAbsent } from "./absent.ts"
import { temporaryFolder } from "./nats.ts"
import {
  admin_password,
  baseOf,
  configure,
  type Place,
  programs,
  services,
} from "./openstack/configuration.ts"
import { freePorts, pythonRun, running } from "./openstack/process.ts"
import { adminLogin, login, passwordOf, Seed, seed, seedShareTypes } from "./openstack/seed.ts"

/** The running services and their seeded data. */
export class Openstack extends Context.Service<
  Openstack,
  {
    readonly place: Place
    /** Keystone's URL, including the version. */
    readonly auth_url: string
    readonly seed: Seed
    /** A fresh token for a user in a project, both by name. */
    readonly tokenOf: (user: string, project: string) => Effect.Effect<string>
    readonly adminToken: Effect.Effect<string>
  }
>()("test/Openstack") {}

const template_folders = ["keystone/fernet", "barbican/.barbican", "manila/state", "manila/locks"]

const prepared = Effect.fnUntraced(function* (folder: string) {
  for (const path of [...template_folders, "exports"]) {
    mkdirSync(join(folder, path), { recursive: true })
  }
  const tree = findTree("openstack") ?? ""
  const place: Place = { folder, tree, ports: yield* Effect.promise(freePorts) }
  return place
})

/** Without WAL, concurrent SQLite writers hit locks, and Keystone responds with 500. */
const useWal = (path: string) => {
  const database = new Database(path)
  database.pragma("journal_mode = WAL")
  database.close()
}

const makeKeystone = Effect.fnUntraced(function* (place: Place) {
  const { folder, tree } = place
  for (const name of ["0", "1"]) {
    // A key of Keystone is 32 random bytes in URL-safe base64, with its padding.
    const key = randomBytes(32).toString("base64").replaceAll("+", "-").replaceAll("/", "_")
    writeFileSync(join(folder, "keystone/fernet", name), key, { mode: 0o600 })
  }
  useWal(join(folder, "keystone/keystone.db"))
  const manage = [join(tree, "usr/bin/keystone-manage")]
  const configured = [...manage, `--config-file=${folder}/keystone/keystone.conf`]
  yield* pythonRun(place, "keystone", [...configured, "db_sync"])
  const url = `${baseOf(place, "keystone")}/v3`
  yield* pythonRun(place, "keystone", [
    ...configured,
    "bootstrap",
    "--bootstrap-password",
    admin_password,
    "--bootstrap-region-id",
    "RegionOne",
    "--bootstrap-service-name",
    "keystone",
    ...["public", "internal", "admin"].flatMap((side) => [`--bootstrap-${side}-url`, url]),
  ])
})

const makeManila = (place: Place) =>
  pythonRun(place, "manila", [
    join(programs, "manila_database.py"),
    `--config-file=${place.folder}/manila/manila.conf`,
  ])

/** Creates databases, keys and seed in a folder. Takes a few seconds. */
const makeTemplate = Effect.fnUntraced(function* (folder: string) {
  const place = yield* prepared(folder)
  writeFileSync(join(folder, "barbican/kek"), randomBytes(32).toString("base64"))
  configure(place)
  useWal(join(folder, "barbican/barbican.db"))
  yield* Effect.all([makeKeystone(place), makeManila(place)], { concurrency: 2 })
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* Effect.forEach(services, (service) => running(place, service), { concurrency: 3 })
      const made = yield* Effect.promise(() => seed(place))
      yield* Effect.promise(() => seedShareTypes(place))
      writeFileSync(join(folder, "seed.json"), JSON.stringify({ ...made, ports: place.ports }))
    }),
  )
})

/** The files that determine a template. */
const makers = ["configuration.ts", "seed.ts", "manila_database.py"]

/** A hash of the files that determine the template. */
const templateName = () => {
  const hash = createHash("sha256")
  for (const name of makers) hash.update(readFileSync(join(programs, name)))
  return `openstack-${hash.digest("hex").slice(0, 16)}`
}

const template = Effect.gen(function* () {
  const folder = join(cacheDirectory(), "templates", templateName())
  if (existsSync(join(folder, "seed.json"))) return folder
  // Two concurrent runs both create it, and the first one is kept.
  const part = `${folder}.${randomUUID()}`
  yield* makeTemplate(part).pipe(
    Effect.tap(Effect.sync(() => existsSync(folder) || renameSync(part, folder))),
    Effect.ensuring(Effect.sync(() => rmSync(part, { recursive: true, force: true }))),
  )
  return folder
})

const File = Schema.fromJsonString(
  Schema.Struct({ ...Seed.fields, ports: Schema.Record(Schema.String, Schema.Int) }),
)

/** Points the catalogue of the copy to the ports of this run. */
const relocate = (place: Place, before: Readonly<Record<string, number>>) => {
  const database = new Database(join(place.folder, "keystone/keystone.db"))
  const update = database.prepare("UPDATE endpoint SET url = replace(url, ?, ?)")
  for (const service of services) {
    update.run(`127.0.0.1:${before[service]}/`, `127.0.0.1:${place.ports[service]}/`)
    database
      .prepare("UPDATE endpoint SET url = ? WHERE url = ?")
      .run(baseOf(place, service), `http://127.0.0.1:${before[service]}`)
  }
  database.close()
}

/** The three services on free ports, for the life of the layer. */
export const openstack = Layer.effect(
  Openstack,
  Effect.gen(function* () {
    const from = yield* template
    const folder = yield* temporaryFolder
    cpSync(from, folder, { recursive: true })
    const place = yield* prepared(folder)
    const { ports, ...known } = yield* Schema.decodeUnknownEffect(File)(
      readFileSync(join(folder, "seed.json"), "utf8"),
    )
    configure(place)
    relocate(place, ports)
    yield* Effect.forEach(services, (service) => running(place, service), { concurrency: 3 })
    const base = baseOf(place, "keystone")
    return {
      place,
      auth_url: `${base}/v3`,
      seed: known,
      tokenOf: (user: string, project: string) =>
        Effect.promise(() =>
          login(base, {
            user: { id: known.users[user] ?? "" },
            password: passwordOf(user),
            scope: { project: { id: known.projects[project] ?? "" } },
          }),
        ),
      adminToken: Effect.promise(() => adminLogin(base)),
    }
  }),
)

const shared = () => layer(openstack, { excludeTestServices: true, timeout: "5 minutes" })

/**
 * Tests that share the three services, on the real clock. Without the packages they are skipped
 * with one line, and fail if ALMANAC_REQUIRE_ALL=1.
 */
export const describeOpenstack = (
  name: string,
  define: (it: Parameters<Parameters<ReturnType<typeof shared>>[1]>[0]) => void,
) => {
  if (findTree("openstack") !== undefined) return shared()(name, define)
  const why = `Keystone, Barbican and Manila are missing: ${trees.openstack.install_command}`
  describeAbsent(name, "OpenStack", why)
}
