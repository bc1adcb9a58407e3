/** Creates elements, and updates the page to match new ones without losing focus or selection. */

export type Child = Node | string | number | null | undefined | false | readonly Child[]

/** Attributes; `on...` are event handlers; false, null and undefined omit the attribute. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>
>

const handlers = ["onclick", "onchange", "oninput", "onsubmit", "ontoggle", "onkeydown"] as const
type Handler = (typeof handlers)[number]
const isHandler = (name: string): name is Handler => handlers.some((child) => child === name)

const add = (element: Element, children: readonly Child[]): void => {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue
    if (child instanceof Node) element.append(child)
    else if (typeof child === "object") add(element, child)
    else element.append(String(child))
  }
}

const fill = (element: HTMLElement | SVGElement, attributes: Attributes, children: Child[]) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (typeof value !== "function") element.setAttribute(name, value === true ? "" : String(value))
    else if (isHandler(name)) element[name] = value
  }
  add(element, children)
}

/** An HTML element. */
export const h = <Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] => {
  const element = document.createElement(tag)
  fill(element, attributes, children)
  return element
}

/** An SVG element. */
export const s = <Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  fill(element, attributes, children)
  return element
}

const keyOf = (node: Node) => (node instanceof Element ? node.getAttribute("data-key") : null)

const isSame = (old: Node, next: Node) =>
  old.nodeName === next.nodeName && keyOf(old) === keyOf(next)

/** Attributes that the user controls: whether a `details` is open. */
const user_controlled = new Set(["open"])

const patchAttributes = (old: HTMLElement | SVGElement, next: HTMLElement | SVGElement) => {
  for (const name of old.getAttributeNames()) {
    if (!next.hasAttribute(name) && !user_controlled.has(name)) old.removeAttribute(name)
  }
  for (const name of next.getAttributeNames()) {
    const value = next.getAttribute(name) ?? ""
    if (old.getAttribute(name) !== value) old.setAttribute(name, value)
  }
  for (const name of handlers) Reflect.set(old, name, Reflect.get(next, name))
  if (old instanceof HTMLInputElement && next instanceof HTMLInputElement) {
    old.checked = next.checked
  }
}

/** Keeps the user's input until the new element has another default. */
const patchField = (old: Element, next: Element) => {
  if (old instanceof HTMLInputElement && next instanceof HTMLInputElement) {
    if (old.defaultValue !== next.defaultValue) old.value = next.defaultValue
  }
  if (old instanceof HTMLOptionElement && next instanceof HTMLOptionElement) {
    if (old.defaultSelected !== next.defaultSelected) old.selected = next.defaultSelected
  }
}

const isElement = (node: Node): node is HTMLElement | SVGElement =>
  node instanceof HTMLElement || node instanceof SVGElement

const patch = (old: Node, next: Node) => {
  if (!isElement(old) || !isElement(next)) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue
    return
  }
  patchField(old, next)
  patchAttributes(old, next)
  // An island, such as a chart, renders its own children.
  if (!next.hasAttribute("data-island")) morphChildren(old, [...next.childNodes])
}

/**
 * Updates the children of `parent` to match `next`, reusing matching elements so that focus,
 * selection and open details survive. `data-key` identifies the elements of a list.
 */
export const morphChildren = (parent: Element, next: readonly Node[]): void => {
  let old: ChildNode | null = parent.firstChild
  for (const node of next) {
    const key = keyOf(node)
    const found: ChildNode | null =
      key === null
        ? old
        : ([...parent.children].find((child) => keyOf(child) === key && isSame(child, node)) ?? old)
    if (found !== null && isSame(found, node)) {
      patch(found, node)
      if (found === old) old = old.nextSibling
      else parent.insertBefore(found, old)
    } else {
      parent.insertBefore(node, old)
    }
  }
  while (old !== null) {
    const rest: ChildNode | null = old.nextSibling
    old.remove()
    old = rest
  }
}
