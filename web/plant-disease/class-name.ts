/** Formats class names, which are usually Crop___Disease. */

const readable = (text: string) =>
  text
    // Names of the demo model, such as "DemoOak", are two words.
    .replace(/^Demo(?=[A-Z])/, "Demo ")
    .replaceAll("_", " ")
    .replaceAll(/\s+/g, " ")
    .replace(/ $/, "")

export interface ClassName {
  /** Empty if the name has only one part. */
  readonly crop: string
  readonly state: string
}

/** Splits "Tomato___Late_blight" into "Tomato" and "Late blight". */
export const splitClassName = (name: string): ClassName => {
  const [crop = "", ...rest] = name.split("___")
  if (rest.length === 0) return { crop: "", state: readable(crop) }
  return { crop: readable(crop), state: readable(rest.join(" ")) }
}

/** "Tomato: Late blight" */
export const classText = (name: string): string => {
  const { crop, state } = splitClassName(name)
  return crop === "" ? state : `${crop}: ${state}`
}

/** Formats a probability with as few digits as useful: "97%", "0.4%", "<0.1%". */
export const probabilityText = (probability: number): string => {
  const percent = probability * 100
  if (percent > 0 && percent < 0.1) return "<0.1%"
  if (percent < 9.95) return `${percent.toFixed(1)}%`
  return percent > 99 && percent < 100 ? ">99%" : `${Math.round(percent)}%`
}
