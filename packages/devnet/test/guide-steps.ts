/** The code of a guide in the order of the page, and whether what a command printed is what the page shows. */

import { readFileSync } from 'node:fs'
import path from 'node:path'

export const root = path.resolve(import.meta.dirname, '../../..')

/** A block of code of a guide. */
export interface Step {
  /** The headings of level 2 and 3 above it. */
  readonly sections: readonly string[]
  /** The paragraph before it. */
  readonly introduction: string
  readonly language: string
  readonly code: string
}

/** The blocks of a page, in its order. */
export function stepsOf(page: string): readonly Step[] {
  const text = readFileSync(path.join(root, page), 'utf8')
  const found = [...text.matchAll(/^(#{2,3}) (.+)$|^```(\w*)\n([\s\S]*?)^```$/gm)]
  const steps: Step[] = []
  let sections: readonly string[] = []
  let end = 0
  for (const { index, 0: whole, 1: level, 2: heading = '', 3: language = '', 4: code = '' } of found) {
    if (level === '##') sections = [heading]
    else if (level === '###') sections = [...sections.slice(0, 1), heading]
    else steps.push({ sections, introduction: lastParagraph(text.slice(end, index)), language, code })
    end = index + whole.length
  }
  return steps
}

function lastParagraph(text: string): string {
  return (
    text
      .trim()
      .split(/\n\s*\n/)
      .at(-1) ?? ''
  ).replaceAll(/\s+/g, ' ')
}

/** The file in which the reader saves this block: the last one that the paragraph before it names. */
export function fileOf({ introduction }: Step): string | undefined {
  return [...introduction.matchAll(/\b[Ss]ave (?:this|it) as `([^`]+)`/g)].at(-1)?.[1]
}

/** Whether the page lets the reader leave this command running. */
export function keepsRunning({ introduction }: Step): boolean {
  return /\bleave it running\b/.test(introduction)
}

const volatile = /(?:0x[0-9a-fA-F]+|\b[a-z]{3}_[0-9a-z]{26}|\b\d{4}-\d\d-\d\dT[\d:.]+Z)…?/g

/** A text of a page as an expression. `…` stands for any text; so does each id, hash, address and time if `isExample`. */
export function patternOf(text: string, { isExample = false } = {}): string {
  const shown = isExample ? text.replaceAll(volatile, '…') : text
  return shown
    .trim()
    .split('…')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[\\s\\S]*?')
}

/**
 * Why a response is not one that the page shows: another member, another kind of value, or another text. Members in `differing` may have
 * any value.
 */
export function whyNotAsShown(shown: unknown, actual: unknown, differing: readonly string[] = [], at = ''): string[] {
  if (differing.some((name) => at.endsWith(`/${name}`))) return []
  if (Array.isArray(shown) && Array.isArray(actual))
    return shown.flatMap((one, index) => whyNotAsShown(one, actual[index], differing, `${at}/${index}`))
  if (isMembers(shown) && isMembers(actual)) {
    const names = [...new Set([...Object.keys(shown), ...Object.keys(actual)])]
    return names.flatMap((name) => whyNotAsShown(shown[name], actual[name], differing, `${at}/${name}`))
  }
  const isAlike =
    typeof shown === 'string' && typeof actual === 'string'
      ? new RegExp(`^${patternOf(shown, { isExample: true })}$`).test(actual)
      : shown === actual
  return isAlike ? [] : [`${at}: the page shows ${JSON.stringify(shown)}, and it is ${JSON.stringify(actual)}`]
}

function isMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
