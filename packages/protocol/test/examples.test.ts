import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import * as protocol from '../src/index.ts'
import { curve, recover } from './signed-payment.ts'

const source = path.resolve(import.meta.dirname, '../src')

interface Example {
  readonly file: string
  /** The statements before it in its block. */
  readonly before: readonly string[]
  readonly code: string
  readonly result: string
}

interface SourceFile {
  readonly file: string
  readonly text: string
}

const files: readonly SourceFile[] = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(path.join(source, file), 'utf8') }))

/** The lines `expression // result` of every `@example`. Its other lines are statements before them. */
const examples: readonly Example[] = files.flatMap(({ file, text }) =>
  (text.match(/\* @example\n(?: \* .*\n)+/g) ?? []).flatMap((block) => examplesIn(file, block)),
)

function examplesIn(file: string, block: string): readonly Example[] {
  const lines = block
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.replace(/^ ?\* /, ''))
  const before = lines.filter((line) => !/ \/\/ .+$/.test(line))
  const found = lines.flatMap((line) => {
    const [, code, result] = /^(.+) \/\/ (.+)$/.exec(line) ?? []
    return code === undefined || result === undefined ? [] : [{ file, before, code, result }]
  })
  if (found.length === 0) throw new Error(`not an example with a result: ${block}`)
  return found
}

/** Every export of the package, and secp256k1, which a caller brings. */
const scope: Readonly<Record<string, unknown>> = { ...protocol, curve, recover }

/** Evaluates an expression, which may await, after statements. */
function evaluate(expression: string, before: readonly string[] = []): Promise<unknown> {
  const body = [`return (async () => {`, ...before, `return (${expression})`, '})()'].join('\n')
  return new Function(...Object.keys(scope), body)(...Object.values(scope))
}

test('the documentation has examples', () => {
  expect(examples.length).toBeGreaterThan(250)
})

test.each(examples)('$file: $code is $result', async ({ before, code, result }) => {
  expect(await evaluate(code, before)).toEqual(await evaluate(result))
})

test('every exported function and class has an example', () => {
  const callables = Object.entries(protocol).flatMap(([name, value]) => (typeof value === 'function' ? [name] : []))
  const lacking = callables.filter((name) => !files.some(({ text }) => isShown(text, name)))
  expect(lacking.sort()).toEqual([])
})

/** Whether the text declares the name after a docstring with an example. */
function isShown(text: string, name: string): boolean {
  const declared = new RegExp(`\\n \\*/\\nexport (?:async )?(?:function|const|class) ${name}\\b`).exec(text)
  if (declared === null) return false
  return text.slice(text.lastIndexOf('/**', declared.index), declared.index).includes('* @example\n')
}
