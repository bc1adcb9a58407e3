/** `almanac plant leaf`: draws a leaf to try the demo model with. */
import { writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { Console, Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"

/** There is no such class, or the file cannot be written. */
class NotDrawn extends Schema.TaggedError<NotDrawn>()("NotDrawn", { message: Schema.String }) {}

/** Pixels per side, like a cropped phone photo. */
const leaf_side = 512
const seed_max = 2 ** 32 - 1
/** Fixed, and outside the demo model's training set. */
const default_seed = 20_261_122

const reasonOf = (error: unknown) => {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
  return code === "EEXIST" ? "the file already exists" : code
}

/** Draws and encodes the leaf. Imports on first use, to keep other commands fast. */
const draw = Effect.fnUntraced(function* (name: string, seed: number, is_png: boolean) {
  const [{ demo_classes, drawLeaf }, { default: sharp }] = yield* Effect.promise(() =>
    Promise.all([import("#trainer"), import("sharp")]),
  )
  const index = demo_classes.indexOf(name)
  if (index === -1) {
    const message = `Unknown class ${name}: use any of ${demo_classes.join(", ")}.`
    return yield* new NotDrawn({ message })
  }
  const raw = { width: leaf_side, height: leaf_side, channels: 3 } as const
  const picture = sharp(drawLeaf(index, seed, leaf_side), { raw })
  return yield* Effect.promise(() => (is_png ? picture.png() : picture.jpeg()).toBuffer())
})

export const leaf = Command.make(
  "leaf",
  {
    out: Flag.String("out").pipe(
      Flag.withDescription("New file, .jpg or .png (default: leaf.jpg)"),
      Flag.withDefault("leaf.jpg"),
    ),
    class: Flag.String("class").pipe(
      Flag.withDescription("Class of the demo model (default: DemoOval___Rust)"),
      Flag.withDefault("DemoOval___Rust"),
    ),
    seed: Flag.Int("seed").pipe(
      Flag.withDescription("Seed of the drawing; each seed draws another leaf"),
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: seed_max }))),
      Flag.withDefault(default_seed),
    ),
  },
  Effect.fn(function* ({ out, class: name, seed }) {
    const bytes = yield* draw(name, seed, out.toLowerCase().endsWith(".png"))
    const to = resolve(out)
    yield* Effect.tryPromise({
      try: () => writeFile(to, bytes, { flag: "wx" }),
      catch: (error) => new NotDrawn({ message: `${to} cannot be written: ${reasonOf(error)}` }),
    })
    yield* Console.log(`${to}: drew ${name}`)
  }),
).pipe(
  Command.withDescription(
    "Draw a leaf for trying the demo model; exit code 1 if it cannot be written",
  ),
  Command.withExamples([
    {
      command: "almanac plant leaf --out leaf.png --seed 7",
      description: "Draw another leaf, as PNG",
    },
  ]),
)
