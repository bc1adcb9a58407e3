/** `almanac plant train` on the command line: rejected arguments, and the files left by a stop. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import sharp from "sharp"
import { afterAll, describe, expect, it } from "vitest"
import { cleanUp, newFolder, runVerb, startVerb, until } from "../world/server/server.ts"

/** Allows for the leaves of an epoch, which are drawn first. */
const first_step_ms_max = 120_000

afterAll(cleanUp)

const train = (...args: ReadonlyArray<string>) => runVerb(newFolder(), ["plant", "train", ...args])

describe("almanac plant train", () => {
  it("wants either drawn leaves or a folder", async () => {
    const message = "almanac: use either --demo or a folder with one subfolder per class\n"
    const neither = await train()
    expect([neither.code, neither.stderr]).toEqual([1, message])
    const both = await train("--demo", "leaves")
    expect([both.code, both.stderr]).toEqual([1, message])
    const drawn = await train("leaves", "--leaves", "10")
    expect(drawn.stderr).toBe("almanac: --leaves requires --demo\n")
  })

  it("says in one line what is wrong with a folder", async () => {
    const out = join(newFolder(), "model")
    const { code, stderr } = await train("/nowhere/leaves", "--out", out)
    expect([code, stderr]).toEqual([1, "almanac: the folder /nowhere/leaves does not exist\n"])
  })

  it("says in one line of which class no image can be read, and writes nothing", async () => {
    const images = newFolder()
    const background = "green"
    const sound = await sharp({ create: { width: 9, height: 9, channels: 3, background } })
      .png()
      .toBuffer()
    for (const [name, bytes] of Object.entries({ first: sound, second: sound, third: "none" })) {
      mkdirSync(join(images, name))
      for (const n of [1, 2]) writeFileSync(join(images, name, `${n}.png`), bytes)
    }
    const folder = newFolder()
    const { code, stderr, stdout } = await train(images, "--out", join(folder, "model"))
    const read = `3 classes, 6 images in ${images}\n`
    const refused = `almanac: no image can be read in ${images} of the class third\n`
    expect([code, stdout, stderr]).toEqual([1, "", read + refused])
    expect(readdirSync(folder)).toEqual([])
  })

  it("bounds its numbers", async () => {
    for (const flags of [
      ["--epochs", "0"],
      ["--leaves", "20001"],
      ["--seed", "-1"],
    ]) {
      expect((await train("--demo", ...flags)).code, flags.join(" ")).toBe(2)
    }
  })

  it("leaves no file when interrupted, and none under its name when killed", async () => {
    const folder = newFolder()
    const args = ["plant", "train", "--demo", "--leaves", "64", "--out", join(folder, "model")]
    const isWriting = () => readdirSync(folder).length > 0
    const stopped = startVerb(newFolder(), args)
    await until("its folder", first_step_ms_max, isWriting)
    stopped.child.kill("SIGTERM")
    expect((await stopped.ended).code).toBe(130)
    expect(readdirSync(folder)).toEqual([])

    const killed = startVerb(newFolder(), args)
    await until("its folder", first_step_ms_max, isWriting)
    killed.child.kill("SIGKILL")
    await killed.ended
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^model\.partial-\d+$/)])
  })
})
