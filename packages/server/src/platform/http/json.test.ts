import fc from 'fast-check'
import { parse as parseSafely } from 'secure-json-parse'
import { expect, test } from 'vitest'
import { Problem } from '../errors.ts'
import { readJson, shapeOf } from './json.ts'

/** As `readJson`, with the depth counted and each text looked through by `secure-json-parse`. */
function readWithoutShortcuts(body: Uint8Array): unknown {
  if (shapeOf(body).depth > 32) return 'refused'
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    return parseSafely(text, undefined, { protoAction: 'error', constructorAction: 'error' })
  } catch {
    return 'refused'
  }
}

function readOrRefuse(body: Uint8Array): unknown {
  try {
    return readJson(body)
  } catch (error) {
    if (error instanceof Problem && error.code === 'malformed-json') return 'refused'
    throw error
  }
}

const escaped = (text: string): string => `\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}${text.slice(1)}`
const keys = ['__proto__', escaped('__proto__'), 'constructor', escaped('constructor'), 'prototype', 'a']
const words = [...keys.map((key) => `"${key}"`), '{', '}', '[', ']', ':', ',', ' ', '1', 'null', '\\', '"', '\ufeff']
/** Texts of all kinds, few of which are JSON. */
const anyText = fc.array(fc.constantFrom(...words), { maxLength: 12 }).map((parts) => parts.join(''))
const { nested } = fc.letrec<{ nested: string }>((tie) => ({
  nested: fc.oneof(
    { depthSize: 'large' },
    fc.constantFrom('1', '"{[__proto__"', 'null'),
    fc.tuple(fc.constantFrom(...keys), tie('nested')).map(([key, inner]) => `{"${key}" : ${inner}}`),
    fc.tuple(tie('nested'), tie('nested')).map(([one, other]) => `[${one},${other}]`),
  ),
}))
const around = (levels: number): ((text: string) => string) => {
  return (text) => `${'['.repeat(levels)}${text}${']'.repeat(levels)}`
}
const deep = fc.tuple(fc.integer({ min: 28, max: 35 }), nested).map(([levels, text]) => around(levels)(text))
const many = fc.array(nested, { maxLength: 40 }).map((texts) => `[${texts.join()}]`)

test('a body is read or refused as by counting its depth and looking through its text', () => {
  fc.assert(
    fc.property(fc.oneof(anyText, nested, deep, many), (text) => {
      const body = new TextEncoder().encode(text)
      expect(readOrRefuse(body)).toEqual(readWithoutShortcuts(body))
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  ['a prototype', '{"__proto__":{"a":1}}'],
  ['a prototype with an escape', '{"\\u005f_proto__":{"a":1}}'],
  ['a prototype of a constructor', '{"a":[{"constructor":{"prototype":{"a":1}}}]}'],
  ['33 levels', around(33)('')],
  ['33 levels of objects', `${'{"a":'.repeat(33)}1${'}'.repeat(33)}`],
])('%s is refused', (_, text) => {
  expect(readOrRefuse(new TextEncoder().encode(text))).toBe('refused')
})

test('32 levels, more brackets than that beside each other, and a word in a value are read', () => {
  for (const text of [around(32)(''), `[${'[],'.repeat(40)}{}]`, '{"a":"__proto__ constructor"}'])
    expect(readOrRefuse(new TextEncoder().encode(text))).toEqual(JSON.parse(text))
})
