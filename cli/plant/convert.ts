/** `almanac plant convert`: a Keras or tfjs network as an ONNX file. */
import { constants } from "node:fs"
import { copyFile, link, rm } from "node:fs/promises"
import { basename, extname, resolve } from "node:path"
import { Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { modelArgument, NotUsable, preparedModel } from "#cli/plant/model.ts"

/** Writes the complete file under its name and never overwrites an existing one. */
const publish = async (from: string, to: string) => {
  const temporary = `${to}.${process.pid}.part`
  try {
    await copyFile(from, temporary, constants.COPYFILE_EXCL)
    // Unlike a rename, a link fails if the name exists.
    await link(temporary, to)
  } finally {
    await rm(temporary, { force: true })
  }
}

const reasonOf = (error: unknown) => {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
  return code === "EEXIST" ? "the file already exists" : code
}

const scale_advice =
  "The network divides by 255 itself, which an .onnx file cannot declare: set plant.scale = 0..255."

export const convert = Command.make(
  "convert",
  {
    model: modelArgument,
    out: Flag.String("out").pipe(
      Flag.withDescription("Output file (default: <model>.onnx in this folder)"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ model, out }) {
    const { file, prepared, onnx_path } = yield* preparedModel(model)
    if (file.format === "onnx") {
      return yield* new NotUsable({
        message: "The model is already an .onnx file and needs no conversion.",
      })
    }
    const stem = basename(model, extname(model))
    const to = resolve(Option.getOrElse(out, () => `${stem}.onnx`))
    yield* Effect.tryPromise({
      try: () => publish(onnx_path, to),
      catch: (error) => new NotUsable({ message: `${to} cannot be written: ${reasonOf(error)}` }),
    })
    const { input, output, parameters } = prepared
    yield* Console.log(`${to}: ${parameters} weights, ${output.classes} classes`)
    if (input.has_rescaling) yield* Console.error(scale_advice)
  }, Effect.scoped),
).pipe(
  Command.withDescription(
    "Convert a Keras or tfjs network to an ONNX file; serving does not require it",
  ),
  Command.withExamples([
    {
      command: "almanac plant convert plant_disease_model.h5 --out plant.onnx",
      description: "The same conversion as setting plant.model to the .h5 file",
    },
  ]),
)
