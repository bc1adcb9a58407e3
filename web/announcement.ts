/** What changed, said to those who do not see it. */
export const announce = (text: string): void => {
  const place = document.querySelector("#announcement")
  if (place !== null) place.textContent = text
}
