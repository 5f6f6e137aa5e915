import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from './canonical-json.ts'
import vectors from './vectors/canonical-json.json' with { type: 'json' }

test('the published texts of RFC 8785 come out byte for byte', () => {
  for (const { input, output } of vectors.texts) expect(canonicalJson(JSON.parse(input))).toBe(output)
})

test('numbers are written as appendix B of RFC 8785 lists them', () => {
  for (const { ieee, text } of vectors.numbers) {
    const view = new DataView(new ArrayBuffer(8))
    view.setBigUint64(0, BigInt(`0x${ieee}`))
    expect(canonicalJson(view.getFloat64(0)), ieee).toBe(text)
  }
})

test('the text does not depend on the order in which members were set, and reads back as the same value', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'grapheme' }), (json) => {
      const value: unknown = JSON.parse(json)
      const text = canonicalJson(value)
      expect(canonicalJson(JSON.parse(text))).toBe(text)
      expect(canonicalJson(reversed(value))).toBe(text)
    }),
  )
})

test('what JSON cannot hold is refused and not signed as something else', () => {
  const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`)
  for (const value of [
    undefined,
    { a: undefined },
    1n,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '\ud800',
    { '\udc00': 1 },
    () => 1,
    new Map(),
    new Date(0),
    deep,
  ]) {
    expect(() => canonicalJson(value)).toThrow(TypeError)
  }
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reversed(member)]),
  )
}
