/** `almanac plant leaf`: a drawn leaf as a file, for a first look without a garden. */
import { writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { Console, Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"

/** No such class, or the file cannot be written; one line that says why. */
class NotDrawn extends Schema.TaggedError<NotDrawn>()("NotDrawn", { message: Schema.String }) {}

/** Pixels of either side: what a phone's photo has when it was cut to the leaf. */
const leaf_side = 512
const seed_max = 2 ** 32 - 1
/** Known, and not of the leaves that the demo model was trained on. */
const default_seed = 20_261_122

const reasonOf = (error: unknown) => {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
  return code === "EEXIST" ? "it is there already" : code
}

/** Drawn and packed as its ending says; only whoever draws loads the program that does. */
const drawn = Effect.fnUntraced(function* (name: string, seed: number, is_png: boolean) {
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
    const bytes = yield* drawn(name, seed, out.toLowerCase().endsWith(".png"))
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
