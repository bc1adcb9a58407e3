/**
 * Generates TypeScript types from an OpenAPI document: `node test/docs/openapi-types.ts` reads the
 * document as JSON from standard input and writes the types to standard output.
 *
 * The generator needs TypeScript 5, whose compiler is a library; in TypeScript 7 it is only a
 * program.
 */
import { registerHooks } from "node:module"
import { text } from "node:stream/consumers"

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "typescript" ? "typescript-5" : specifier, context),
})

const { default: typesOf, astToString } = await import("openapi-typescript")
process.stdout.write(astToString(await typesOf(await text(process.stdin))))
