/** `almanac plant convert`: a Keras or tfjs network as an ONNX file. */
import { constants } from "node:fs"
import { copyFile, link, rm } from "node:fs/promises"
import { basename, extname, resolve } from "node:path"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { modelArgument, NotUsable, preparedModel } from "#cli/plant/model.ts"

/** Under its own name only when it is whole; what is there is left alone. */
const placed = async (from: string, to: string) => {
  const making = `${to}.${process.pid}.part`
  try {
    await copyFile(from, making, constants.COPYFILE_EXCL)
    // Unlike a rename it refuses where something has that name.
    await link(making, to)
  } finally {
    await rm(making, { force: true })
  }
}

const reasonOf = (error: unknown) => {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
  return code === "EEXIST" ? "it is there already" : code
}

const scale_advice =
  "It divides by 255 itself, which an .onnx does not tell: serve it with plant.scale = 0..255."

export const convert = Command.make(
  "convert",
  {
    model: modelArgument,
    out: Flag.String("out").pipe(
      Flag.withDescription("The file that is written; <model>.onnx in this folder if absent"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ model, out }) {
    const { file, prepared, onnx_path } = yield* preparedModel(model)
    if (file.format === "onnx") {
      return yield* new NotUsable({ message: "It is an .onnx already, and is used as it is." })
    }
    const stem = basename(model, extname(model))
    const to = resolve(Option.getOrElse(out, () => `${stem}.onnx`))
    yield* Effect.tryPromise({
      try: () => placed(onnx_path, to),
      catch: (error) => new NotUsable({ message: `${to} cannot be written: ${reasonOf(error)}` }),
    })
    const { input, output, parameters } = prepared
    yield* Console.log(`${to}: ${parameters} weights, ${output.classes} classes`)
    if (input.has_rescaling) yield* Console.error(scale_advice)
  }, Effect.scoped),
).pipe(
  Command.withDescription("Write a Keras or tfjs network as an ONNX file; serving needs no such"),
  Command.withExamples([
    {
      command: "almanac plant convert plant_disease_model.h5 --out plant.onnx",
      description: "What plant.model with the .h5 does by itself, once",
    },
  ]),
)
