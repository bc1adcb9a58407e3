/** `almanac plant leaf`: draws a leaf to try the demo model with. */
import { writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { Console, Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"

/** There is no such class, or the file cannot be written. */
class NotDrawn extends Schema.TaggedError<NotDrawn>()("NotDrawn", { message: Schema.String }) {}

/** Pixels per side, like a cropped photo of a phone. */
const leaf_side = 512
const seed_max = 2 ** 32 - 1
/** Fixed, and outside the demo model's training set. */
const default_seed = 20_261_122

const reasonOf = (error: unknown) => {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
  return code === "EEXIST" ? "it already exists" : code
}

/** Draws and encodes the leaf. Imports on first use, to keep other commands fast. */
const draw = Effect.fnUntraced(function* (name: string, seed: number, is_png: boolean) {
  const [{ demo_classes, drawLeaf }, { default: sharp }] = yield* Effect.promise(() =>
    Promise.all([import("#trainer"), import("sharp")]),
  )
  const index = demo_classes.indexOf(name)
  if (index === -1) {
    const message = `There is no class ${name}. Drawn are ${demo_classes.join(", ")}.`
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
      Flag.withDescription("The file that is written, a .jpg or .png; it must not be there"),
      Flag.withDefault("leaf.jpg"),
    ),
    class: Flag.String("class").pipe(
      Flag.withDescription("What it suffers from, as the demo model names it"),
      Flag.withDefault("DemoOval___Rust"),
    ),
    seed: Flag.Int("seed").pipe(
      Flag.withDescription("Another one for each"),
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
    yield* Console.log(`${to}: ${name}, drawn`)
  }),
).pipe(
  Command.withDescription("Draw a leaf that the demo model may know. Exit code 0, 1 if not"),
  Command.withExamples([
    { command: "almanac plant leaf --out leaf.png --seed 7", description: "Another one" },
  ]),
)
