/** Compares decoding and resizing with Pillow, from the system or the bootstrap's tree. */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import sharp from "sharp"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { findTree, treeEnvironment, trees } from "../../../launcher/trees.mjs"
import { describeAbsent } from "../../../test/world/programs/absent.ts"
import { decode } from "../images/image.ts"
import { type Pixels, resampler } from "../resample.ts"
import { random } from "./random.ts"

/** Debian's Python, which the package is built for; PATH may have another one first. */
const python = "/usr/bin/python3"
const answer_bytes_max = 2 ** 24
const options = { pixels_max: 50_000_000 }

interface Reference {
  readonly name: string
  readonly rgb: string
  readonly turned: string
  readonly bicubic: string
  readonly bilinear: string
  readonly nearest: string
}

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

const read = async (path: string, auto_orient = false): Promise<Pixels> => {
  const decoded = await decode(readFileSync(path), { ...options, auto_orient })
  if ("problem" in decoded) throw new Error(`${path}: ${decoded.detail}`)
  return decoded
}

/** Writes images that Pillow cannot write. */
const writeMore = async (folder: string) => {
  const [width, height] = [83, 61]
  const values = random(3)
  const deep = Uint16Array.from({ length: width * height * 3 }, () => values(65_536))
  const raw = { width, height, channels: 3 } as const
  const sixteen = sharp(deep, { raw }).toColourspace("rgb16")
  await sixteen.png().toFile(join(folder, "deep-rgb.png"))
  const bytes = Uint8Array.from({ length: width * height * 3 }, () => values(256))
  await sharp(bytes, { raw }).png({ progressive: true }).toFile(join(folder, "interlaced.png"))
  const wide = sharp(bytes, { raw }).withIccProfile("p3")
  await wide.png().toFile(join(folder, "profile.png"))
  await wide.jpeg().toFile(join(folder, "profile.jpg"))
}

const define = (tree: string) => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-pillow-"))
  const resized = resampler(224)
  let references: ReadonlyArray<Reference> = []

  beforeAll(async () => {
    await writeMore(folder)
    const program = join(import.meta.dirname, "pillow-reference.py")
    const { stdout, stderr } = spawnSync(python, [program, folder], {
      env: { ...process.env, ...treeEnvironment(tree) },
      encoding: "utf8",
      maxBuffer: answer_bytes_max,
    })
    if (stdout === "") throw new Error(stderr)
    const answer: ReadonlyArray<Reference> = JSON.parse(stdout)
    references = answer
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("decodes and resizes 200 images of every kind to the same bytes", async () => {
    const different: Array<string> = []
    for (const { name, ...theirs } of references) {
      const image = await read(join(folder, name))
      if (digest(image.rgb) !== theirs.rgb) different.push(`${name} decoded`)
      for (const filter of ["bicubic", "bilinear", "nearest"] as const) {
        if (digest(resized(image, filter)) !== theirs[filter]) different.push(`${name} ${filter}`)
      }
    }
    expect(different).toEqual([])
    expect(references.length).toBeGreaterThanOrEqual(200)
  }, 120_000)

  it("auto_orient applies all eight EXIF orientations", async () => {
    const turned = references.filter(({ name }) => name.startsWith("exif-"))
    const ours = await Promise.all(
      turned.map(async ({ name }) => digest((await read(join(folder, name), true)).rgb)),
    )
    expect(ours).toEqual(turned.map((one) => one.turned))
    expect(new Set(ours).size).toBe(8)
  })
}

/** Defines the tests. Without Pillow they are skipped, or fail if `is_required`. */
export const agreementWithPillow = ({ is_required }: { readonly is_required: boolean }) => {
  const name = "agreement with Pillow"
  const tree = findTree("pillow")
  if (tree !== undefined) return describe(name, () => define(tree))
  const why = `Pillow is needed: ${trees.pillow.install_command}`
  return describeAbsent(name, "Pillow", why, is_required)
}
