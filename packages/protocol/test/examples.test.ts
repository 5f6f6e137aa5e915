import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import * as protocol from '../src/index.ts'

const source = path.resolve(import.meta.dirname, '../src')

interface Example {
  readonly file: string
  readonly code: string
  readonly result: string
}

/** The lines `expression // result` of every `@example`. */
const examples: readonly Example[] = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .flatMap((file) => {
    const blocks = readFileSync(path.join(source, file), 'utf8').match(/\* @example\n(?: \* .*\n)+/g) ?? []
    return blocks.flatMap((block) => block.trim().split('\n').slice(1)).map((line) => ({ file, ...partsOf(line) }))
  })

function partsOf(line: string): Omit<Example, 'file'> {
  const [, code, result] = /^ ?\* (.+) \/\/ (.+)$/.exec(line) ?? []
  if (code === undefined || result === undefined) throw new Error(`not an example with a result: ${line}`)
  return { code, result }
}

/** Evaluates an expression with all exports of the package in scope. */
function evaluate(expression: string): unknown {
  return new Function(...Object.keys(protocol), `return (${expression})`)(...Object.values(protocol))
}

test('the documentation has examples', () => {
  expect(examples.length).toBeGreaterThan(80)
})

test.each(examples)('$file: $code is $result', ({ code, result }) => {
  expect(evaluate(code)).toEqual(evaluate(result))
})
