/**
 * Runs docs/guide-client.md as a newcomer does, against a real server, a real S3 and the real
 * engine; then a backup on a terminal, slow enough to watch.
 */
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { exit_codes } from "#cli/client/exit-code.ts"
import { onTerminal, seen } from "../cli/client/terminal.ts"
import { describeWithRadosgw } from "../world/programs/radosgw.ts"
import {
  cleanUp,
  newFolder,
  program,
  runVerb,
  startScript,
  startServer,
  startVerb,
  until,
} from "../world/server/server.ts"
import { shareFolder } from "../world/server/share-tenant.ts"
import { commandsIn, guideText, root, walk } from "./guide.ts"

const walk_ms_max = 540_000
const up_ms_max = 60_000
/** Slow enough that the progress line visibly moves. */
const upload_kib_per_second = 20_000
/** Reuses the bootstrap's downloads, although the home is another folder. */
const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache")
/** More than the engine reads ahead of its upload. */
const large_files = 10
const large_bytes = 20_000_000
const settings = {
  ALMANAC_ENGINE__UPLOAD_KIB_PER_SECOND: String(upload_kib_per_second),
  // A worker reports progress several times within this period.
  ALMANAC_CONDUCTOR__WORKER_HEARTBEAT_DEADLINE_SECONDS: "3",
}

afterAll(cleanUp)

describeWithRadosgw("docs/guide-client.md", () => {
  it(
    "leads from a bucket to a restored share, and a backup is watched on a terminal",
    async () => {
      const folder = newFolder()
      const [work, home] = [newFolder(), newFolder()]
      const server = await startServer(folder, settings)
      const s3 = startScript(folder, [join(root, program), "demo", "s3"])
      await s3.waitFor(/^bucket=\S+$/m, up_ms_max)
      writeFileSync(join(work, "demo.env"), s3.printed.stdout)
      const { code, output } = await walk(work, commandsIn(guideText("guide-client.md")), {
        ALMANAC_DATA_DIR: folder,
        HOME: home,
        XDG_CACHE_HOME: cache,
      })
      assert.equal(code, 0, output)
      assert.match(output, /^target_enroll available +100%/m)
      assert.match(output, /^ID +STATUS +BYTES +FILES\n[0-9a-f-]{36} {2}available +\d+ +\d+$/m)
      assert.match(output, /^new_share_id +[0-9a-f-]{36}$/m)
      assert.match(output, /^available(,available)+$/m)
      assert.match(output, /^model\.bin$/m)

      const { tenant } = server.credentials
      const share = shareFolder(server, tenant, tenant.share_id)
      const fill = (name: string) => {
        for (let n = 0; n < large_files; n++) {
          writeFileSync(join(share, `${name}-${n}.bin`), randomBytes(large_bytes))
        }
      }
      fill("large")
      const env = { HOME: home, ALMANAC_DATA_DIR: folder }
      const targets = await runVerb(folder, ["targets", "ls", "-q"], env)
      const backup = ["backups", "create", "--share-id", tenant.share_id]
      const args = [...backup, "--target-id", targets.stdout.trim(), "--wait"]
      const watched = await onTerminal(120, args, env)
      assert.equal(watched.code, 0, watched.text)
      const moving = watched.text.match(
        /backup transferring {2}\[#*-*\] +\d+% {2}\S+ MiB \/ \S+ MiB/g,
      )
      assert.isAbove(new Set(moving).size, 1, watched.text)
      assert.match(watched.text, /[\d.]+ [KM]iB\/s {2}0:\d\d left/)
      assert.match(seen(watched.text), /^status +available$/m)

      // Cancelling a job ends the command that waits for it.
      fill("other")
      const waiting = startVerb(folder, args)
      const job_id = await until(
        "its job",
        up_ms_max,
        () => /^Job (\S+)$/m.exec(waiting.printed.stderr)?.[1],
      )
      const cancelled = await runVerb(folder, ["jobs", "cancel", job_id, "-o", "id"], env)
      assert.equal(cancelled.stdout, `id  ${job_id}\n`, cancelled.stderr)
      const failed = { ...(await waiting.ended), ...waiting.printed }
      assert.equal(failed.code, exit_codes.job_failed[0], failed.stderr)
      assert.match(failed.stderr, /cancelled\n {2}next: /)
      s3.child.kill("SIGINT")
      await s3.ended
      await server.stop()
    },
    walk_ms_max,
  )
})
