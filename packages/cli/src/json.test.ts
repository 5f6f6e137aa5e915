import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readJson } from './json.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test('every JSON value is read, however it is formatted', () => {
  const space = fc.constantFrom('', ' ', '\n', '\t', 2, 8)
  fc.assert(
    fc.property(fc.jsonValue(), space, (value, indent) => {
      expect(readJson(bytes(JSON.stringify(value, null, indent)))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

test('text with a duplicate member is rejected', () => {
  const twice = [
    '{"a":1,"a":1}',
    '[{"b":{"a":1, "c":2, "a" :1}}]',
    '{"a":1,"\\u0061":2}',
    '{"__proto__":1,"__proto__":2}',
  ]
  for (const text of twice) expect(readJson(bytes(text)), text).toBeUndefined()
  const once = ['{"a":"\\":","b":"a\\\\"}', '{"a":{"a":{"a":[]}}}', '{"__proto__":1}', '["a",{"a":"a:"}]']
  for (const text of once) expect(readJson(bytes(text)), text).toEqual(JSON.parse(text))
})

test('anything but UTF-8 JSON is rejected', () => {
  for (const text of ['', '{', "{'a':1}", '{"a":1}x', '\ufeff{}', '"\n"']) expect(readJson(bytes(text))).toBeUndefined()
  expect(readJson(Uint8Array.of(0x22, 0xff, 0x22))).toBeUndefined()
  expect(readJson(bytes('['.repeat(5_000_000)))).toBeUndefined()
})
