/** The query of a prediction: optional parts of the response. Source: issue 7. */

type Parameter = string | ReadonlyArray<string> | undefined

export interface PredictionQuery {
  readonly top_k?: Parameter
  readonly explain?: Parameter
}

export interface PredictionOptions {
  /** How many of the likeliest classes to return. */
  readonly top_k: number | undefined
  /** As a field of the response, or as the response. */
  readonly heatmap: "json" | "png" | undefined
}

const whole = /^[1-9]\d{0,5}$/

/** Whether the client prefers PNG: its header contains PNG but not JSON. */
const takesPng = (accept = "") => {
  const types = accept.split(",").map((type) => type.split(";", 1)[0]?.trim().toLowerCase())
  return types.includes("image/png") && !types.includes("application/json")
}

/** Returns the options, or the text of the 400. A number above that of the classes selects all. */
export const optionsOf = (
  { top_k, explain }: PredictionQuery,
  accept: string | undefined,
): PredictionOptions | string => {
  const is_count = typeof top_k === "string" && whole.test(top_k)
  if (top_k !== undefined && !is_count)
    return "The parameter 'top_k' must be a positive integer, given once."
  if (explain !== undefined && explain !== "heatmap")
    return "The parameter 'explain' must be 'heatmap', given once."
  const form = takesPng(accept) ? "png" : "json"
  return {
    top_k: top_k === undefined ? undefined : Number(top_k),
    heatmap: explain === undefined ? undefined : form,
  }
}
