/**
 * TypeScript types of an OpenAPI document: `node test/docs/openapi-types.ts`, the document as JSON
 * on standard input, the types on standard output.
 *
 * The generator is written for TypeScript 5, whose compiler is a library; 7's is a program alone.
 */
import { registerHooks } from "node:module"
import { text } from "node:stream/consumers"

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "typescript" ? "typescript-5" : specifier, context),
})

const { default: typesOf, astToString } = await import("openapi-typescript")
process.stdout.write(astToString(await typesOf(await text(process.stdin))))
