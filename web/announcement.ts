/** Announces changes to screen readers. */
export const announce = (text: string): void => {
  const place = document.querySelector("#announcement")
  if (place !== null) place.textContent = text
}
