/** What a prediction is to be told with, beside the class. Source: issue 7. */

type Parameter = string | ReadonlyArray<string> | undefined

export interface Given {
  readonly top_k?: Parameter
  readonly explain?: Parameter
}

export interface Wanted {
  /** So many of the likeliest classes. */
  readonly top_k: number | undefined
  /** In the answer, or as the answer. */
  readonly heatmap: "json" | "png" | undefined
}

const whole = /^[1-9]\d{0,5}$/

/** Whether a PNG is wanted more than JSON: named, and no JSON beside it. */
const takesPng = (accept = "") => {
  const types = accept.split(",").map((type) => type.split(";", 1)[0]?.trim().toLowerCase())
  return types.includes("image/png") && !types.includes("application/json")
}

/** What is wanted, or the text of the 400. More classes than there are: all of them. */
export const wantedOf = (
  { top_k, explain }: Given,
  accept: string | undefined,
): Wanted | string => {
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
