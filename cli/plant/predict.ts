/** `almanac predict`: predicts the plant disease on images. */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { predict as group, model, predictOne } from "#cli/client/plant-disease/prediction.ts"
import { showItems, showOne } from "#cli/client/session.ts"
import { summaries } from "#cli/client/summaries.ts"
import { runEach, shared, withSession } from "#cli/requests.ts"

/** Maximum number of images on one command line. */
const files_max = 10_000

export const predict = Command.make(
  group.name,
  {
    files: Argument.String("image").pipe(
      Argument.withDescription("Image files of leaves; without one, the model is described"),
      Argument.variadic({ min: 0, max: files_max }),
    ),
    top_k: Flag.Int("top-k").pipe(
      Flag.withDescription("Number of classes to show with their probabilities"),
      Flag.optional,
    ),
    shared,
  },
  ({ files, top_k, shared }) =>
    withSession(shared, async (session) => {
      if (files.length === 0) return showOne(session, await model(session))
      await runEach(
        session,
        files,
        (file) => predictOne(session, file, Option.getOrUndefined(top_k)),
        (found) => showItems(session, found, ["file", "prediction", "predictions"]),
      )
    }),
).pipe(
  Command.withDescription(summaries.predict),
  Command.withExamples([
    { command: "almanac predict leaf.jpg --top-k 3", description: "The three most likely classes" },
  ]),
)
