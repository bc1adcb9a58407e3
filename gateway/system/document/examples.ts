/** Adds the recorded examples to an operation. */
import type { Example } from "#gateway/reference.ts"
import type { Content, MediaType, Operation } from "#gateway/system/document/json.ts"

/** The content type of an example: a text is an example of a type other than JSON, if any. */
const typeOf = (content: Content, example: unknown) => {
  const types = Object.keys(content)
  const is_text = typeof example === "string"
  return types.find((type) => type.startsWith("application/json") !== is_text) ?? types[0] ?? ""
}

/** The example of lines that are described one by one is the first line. */
const ofLine = ({ schema }: MediaType, example: unknown): unknown =>
  typeof example === "string" && schema?.type !== "string"
    ? JSON.parse(example.slice(0, example.indexOf("\n")))
    : example

const withExample = (content: Content, example: unknown): Content => {
  if (example === undefined) return content
  const type = typeOf(content, example)
  const media = content[type] ?? {}
  return { ...content, [type]: { ...media, example: ofLine(media, example) } }
}

/** The operation with the values of the example. */
export const exemplified = (operation: Operation, example: Example | undefined): Operation => {
  if (example === undefined) return operation
  const { parameters = {}, request, responses = {} } = example
  const { requestBody } = operation
  return {
    ...operation,
    parameters: (operation.parameters ?? []).map((parameter) =>
      parameter.name in parameters
        ? { ...parameter, example: parameters[parameter.name] }
        : parameter,
    ),
    ...(requestBody && {
      requestBody: { ...requestBody, content: withExample(requestBody.content, request) },
    }),
    responses: Object.fromEntries(
      Object.entries(operation.responses).map(([status, response]) => {
        const { content } = response
        const body = responses[status]
        return [
          status,
          content === undefined ? response : { ...response, content: withExample(content, body) },
        ]
      }),
    ),
  }
}
