import { type ElementType, Fragment, type Key, type ReactElement } from 'react'
import { jsx as element, jsxs as elementOfMany } from 'react/jsx-runtime'

/** Characters that change the direction of the text after them: embeddings, overrides and isolates. */
const turning = /[\u202A-\u202E\u2066-\u2069]/g

/** The text with each character that would turn what follows it written as its code: `photo[U+202E]gpj.exe`. */
function visibleText(text: string): string {
  return text.replace(turning, (character) => `[U+${character.charCodeAt(0).toString(16).toUpperCase()}]`)
}

function visible(children: unknown): unknown {
  if (typeof children === 'string') return visibleText(children)
  if (!Array.isArray(children)) return children
  return children.some((child) => typeof child === 'string' && visibleText(child) !== child)
    ? children.map((child: unknown) => (typeof child === 'string' ? visibleText(child) : child))
    : children
}

type Props = Readonly<Record<string, unknown>>

function withVisible(props: Props): Props {
  const children = visible(props.children)
  return children === props.children ? props : { ...props, children }
}

/**
 * Replaces React's JSX functions (see `vite.config.ts`), so that a name, note or file name of a stranger cannot turn the text beside it, on
 * any page.
 */
export function jsx(type: ElementType, props: Props, key?: Key): ReactElement {
  return element(type, withVisible(props), key)
}

export function jsxs(type: ElementType, props: Props, key?: Key): ReactElement {
  return elementOfMany(type, withVisible(props), key)
}

/** The form in which `npm run dev` makes elements. */
export function jsxDEV(type: ElementType, props: Props, key?: Key, isOfMany = false): ReactElement {
  return isOfMany ? jsxs(type, props, key) : jsx(type, props, key)
}

export { Fragment }
