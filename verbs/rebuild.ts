/** `almanac rebuild`: read models from nothing. */
import { Console, Effect, Layer, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import type { Instance } from "#adapters/instance-file.ts"
import type { Settings } from "#schemas/settings.ts"
import { ask, instance } from "#verbs/instance.ts"
import { databases, read_models } from "#verbs/read-models.ts"
import { settings } from "#verbs/root.ts"
import { exclusive } from "#verbs/session.ts"

/** There is no read model of that name. */
class NoReadModel extends Schema.TaggedError<NoReadModel>()("NoReadModel", {
  message: Schema.String,
}) {}

const Rebuilt = Schema.fromJsonString(Schema.Struct({ position: Schema.Int }))

const say = (name: string, position: number) =>
  Console.log(`${name}: rebuilt from nothing, shows position ${position}`)

/** By the instance, which alone may write them. */
const byInstance = Effect.fnUntraced(function* (running: Instance, of: Settings, name: string) {
  const answer = yield* ask(running, of, "POST", `/v1/admin/read-models/${name}/rebuild`)
  const { position } = yield* Schema.decodeUnknownEffect(Rebuilt)(answer)
  yield* say(name, position)
})

const here = (of: Settings, names: ReadonlyArray<string>) =>
  Effect.forEach(
    [...read_models].filter(([name]) => names.includes(name)),
    ([name, open]) =>
      Effect.gen(function* () {
        const model = yield* open
        yield* say(name, yield* model.rebuild)
      }),
    { discard: true },
  ).pipe(Effect.scoped, Effect.provide(Layer.merge(exclusive(of), databases(of))))

export const rebuild = Command.make(
  "rebuild",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription(
        `Read model (${[...read_models.keys()].join(", ")}); all without it`,
      ),
      Argument.variadic(),
    ),
  },
  Effect.fn(function* ({ name: asked }) {
    const unknown = asked.find((name) => !read_models.has(name))
    if (unknown !== undefined) {
      const known = [...read_models.keys()].join(", ")
      return yield* new NoReadModel({ message: `no read model ${unknown}: there are ${known}` })
    }
    const names = asked.length > 0 ? asked : [...read_models.keys()]
    const configured = yield* settings
    const running = yield* instance(configured)
    if (running === undefined) return yield* here(configured, names)
    yield* Effect.forEach(names, (name) => byInstance(running, configured, name), {
      discard: true,
    })
  }),
).pipe(
  Command.withDescription("Build read models from the log again, from nothing"),
  Command.withExamples([
    { command: "almanac rebuild", description: "All of them" },
    { command: "almanac rebuild blob-storage", description: "One of them" },
  ]),
)
