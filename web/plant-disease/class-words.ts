/** Class names as words. Their form is Crop___Disease by habit, and by no rule. */

const plain = (text: string) =>
  text
    // "DemoOak": a name of the demo model's is two words.
    .replace(/^Demo(?=[A-Z])/, "Demo ")
    .replaceAll("_", " ")
    .replaceAll(/\s+/g, " ")
    .replace(/ $/, "")

export interface ClassWords {
  /** Empty where the name has one part only. */
  readonly crop: string
  readonly state: string
}

/** "Tomato___Late_blight" is the Late blight of a Tomato. */
export const classWords = (name: string): ClassWords => {
  const [crop = "", ...rest] = name.split("___")
  if (rest.length === 0) return { crop: "", state: plain(crop) }
  return { crop: plain(crop), state: plain(rest.join(" ")) }
}

/** "Tomato: Late blight" */
export const classText = (name: string): string => {
  const { crop, state } = classWords(name)
  return crop === "" ? state : `${crop}: ${state}`
}

/** A probability, as few digits as tell it: "97%", "0.4%", "<0.1%". */
export const chance = (probability: number): string => {
  const percent = probability * 100
  if (percent > 0 && percent < 0.1) return "<0.1%"
  if (percent < 9.95) return `${percent.toFixed(1)}%`
  return percent > 99 && percent < 100 ? ">99%" : `${Math.round(percent)}%`
}
