/** `almanac completion`: shell completion of commands and flags. */

import { Console, Effect } from "effect"
import { Argument, Command, Completions } from "effect/cli"
import { summaries } from "#cli/client/summaries.ts"

const shells = ["bash", "zsh", "fish"] as const

/** The command; `loadTree` loads the tree of all commands, which only this one needs. */
export const completionOf = (loadTree: () => Promise<Command.Command.Any>) =>
  Command.make(
    "completion",
    { shell: Argument.Literals("shell", shells).pipe(Argument.withDescription("Shell")) },
    Effect.fn(function* ({ shell }) {
      const tree = Completions.fromCommand(yield* Effect.promise(loadTree))
      yield* Console.log(Completions.generate("almanac", shell, tree))
    }),
  ).pipe(
    Command.withDescription(summaries.completion),
    Command.withExamples([
      {
        command: "almanac completion bash > ~/.local/share/bash-completion/completions/almanac",
        description: "Install it for bash, which loads it on demand",
      },
      {
        command: "almanac completion fish > ~/.config/fish/completions/almanac.fish",
        description: "Install it for fish",
      },
    ]),
  )
