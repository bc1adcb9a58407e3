/**
 * The command line in a real cloud: authenticated by a real Keystone with OpenStack's variables.
 */
import { join } from "node:path"
import { afterAll, assert } from "@effect/vitest"
import { Effect } from "effect"
import { exit_codes } from "#cli/client/exit-code.ts"
import { service_password } from "../../world/programs/openstack/configuration.ts"
import { passwordOf } from "../../world/programs/openstack/seed.ts"
import { describeOpenstack, Openstack } from "../../world/programs/openstack.ts"
import { cleanUp, newFolder, runVerb, startServer } from "../../world/server/server.ts"

const whole_ms_max = 300_000

afterAll(cleanUp, 60_000)

describeOpenstack("almanac in a cloud", (it) => {
  it.effect(
    "finds the service in the catalogue, and asks as who signed in",
    () =>
      Effect.gen(function* () {
        const { auth_url, seed } = yield* Openstack
        const folder = newFolder()
        const own = {
          ALMANAC_IDENTITY__KIND: "keystone",
          ALMANAC_KEYSTONE_AUTHTOKEN__AUTH_URL: auth_url,
          ALMANAC_KEYSTONE_AUTHTOKEN__USERNAME: "svcprotect",
          ALMANAC_KEYSTONE_AUTHTOKEN__PASSWORD: service_password,
          ALMANAC_KEYSTONE_AUTHTOKEN__REGION: "RegionOne",
          ALMANAC_MANILA__MOUNT: "local",
          ALMANAC_DATABASE__CONNECTION: `sqlite:///${join(folder, "read-models")}`,
          ALMANAC_WORKER__CAPACITY_SLOTS: "2",
          ALMANAC_ENGINE__REQUIRE_FIPS_PROFILE: "false",
          ALMANAC_COMPUTE__KIND: "none",
        }
        const server = yield* Effect.acquireRelease(
          Effect.promise(() => startServer(folder, own)),
          (running) => Effect.promise(() => running.stop()),
        )
        const run = (args: ReadonlyArray<string>, env = {}) =>
          Effect.promise(() => runVerb(newFolder(), args, { HOME: folder, ...env }))
        const registered = yield* Effect.promise(() =>
          runVerb(folder, ["catalog", "register", "--url", `${server.url}/v1`], own),
        )
        assert.equal(registered.code, 0, registered.stderr)
        const as = (user: string, project: string, domain = seed.domain) => ({
          OS_AUTH_URL: auth_url,
          OS_USERNAME: user,
          OS_PASSWORD: passwordOf(user),
          OS_PROJECT_NAME: project,
          OS_REGION_NAME: "RegionOne",
          OS_USER_DOMAIN_ID: domain,
          OS_PROJECT_DOMAIN_ID: domain,
        })
        const mine = yield* run(["usage", "show", "--json"], as("alice", "tenant-a"))
        assert.equal(mine.code, 0, mine.stderr)
        assert.equal(JSON.parse(mine.stdout).protected_shares, 0)
        const theirs = yield* run(["workers", "list"], as("alice", "tenant-a"))
        assert.equal(theirs.code, exit_codes.forbidden[0], theirs.stderr)
        const operator = yield* run(
          ["workers", "list", "--json"],
          as("operator", "service", "default"),
        )
        assert.equal(operator.code, 0, operator.stderr)
        const wrong = { ...as("alice", "tenant-a"), OS_PASSWORD: "geheim" }
        const refused = yield* run(["usage", "show"], wrong)
        assert.equal(refused.code, exit_codes.forbidden[0], refused.stderr)
        assert.match(refused.stderr, /next: check OS_USERNAME/)
        assert.notInclude(refused.stderr, "geheim")
      }).pipe(Effect.scoped),
    whole_ms_max,
  )
})
