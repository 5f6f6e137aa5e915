import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  decodeBase64,
  decodeBase64Url,
  decodeByAtob,
  decodeJsonBase64,
  decodeUrlByAtob,
  encodeBase64,
  encodeBase64Url,
  encodeByBtoa,
  encodeJsonBase64,
  encodeUrlByBtoa,
} from './base64.ts'

const notBase64 = [
  'Zg',
  'Zg=',
  'Zh==',
  'Zm9=',
  'Z===',
  '====',
  'Zm 9',
  'Zm9v\n',
  'Zm9_',
  'Zm9-',
  'é===',
  'Zm=v',
  ' ',
  'Zm9vZm9 ',
  'Zm9v    ',
  'Zg==\t\t\t\t',
  'Zm9vZg= =',
  '=Zm9',
]

const notBase64Url = [
  'Zg==',
  'Zh',
  'Zm9=',
  'Z',
  'Zm9+',
  'Zm9/',
  'Zm9 ',
  'Zm9vé',
  'Zm 9',
  'Zg ',
  'Zm9vZ',
  'Zm9v Z',
  '=',
  '==',
]

test('bytes are written as Node writes them, and come back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20_000 }), (bytes) => {
      expect(encodeBase64(bytes)).toBe(Buffer.from(bytes).toString('base64'))
      expect(encodeBase64Url(bytes)).toBe(Buffer.from(bytes).toString('base64url'))
      expect(decodeBase64(encodeBase64(bytes))).toEqual(bytes)
      expect(decodeBase64Url(encodeBase64Url(bytes))).toEqual(bytes)
    }),
  )
})

test('only the one text of some bytes is read as them', () => {
  for (const text of notBase64) {
    expect(decodeBase64(text), text).toBeUndefined()
  }
  for (const text of notBase64Url) {
    expect(decodeBase64Url(text), text).toBeUndefined()
  }
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), (text) => {
      const bytes = decodeBase64(text)
      if (bytes !== undefined) expect(encodeBase64(bytes)).toBe(text)
    }),
  )
})

test('an engine without native base64 reads and writes the same', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20_000 }), fc.string({ maxLength: 12 }), (bytes, text) => {
      expect(encodeByBtoa(bytes)).toBe(encodeBase64(bytes))
      expect(decodeByAtob(encodeBase64(bytes))).toEqual(bytes)
      expect(decodeByAtob(text)).toEqual(decodeBase64(text))
      expect(encodeUrlByBtoa(bytes)).toBe(encodeBase64Url(bytes))
      expect(decodeUrlByAtob(encodeBase64Url(bytes))).toEqual(bytes)
      expect(decodeUrlByAtob(text)).toEqual(decodeBase64Url(text))
    }),
  )
  const almost = fc.string({ unit: fc.constantFrom(...'AQgwZm9_-=\t '), maxLength: 9 })
  fc.assert(
    fc.property(almost, (text) => {
      expect(decodeUrlByAtob(text)).toEqual(decodeBase64Url(text))
    }),
  )
  for (const text of notBase64) expect(decodeByAtob(text), text).toBeUndefined()
  for (const text of notBase64Url) expect(decodeUrlByAtob(text), text).toBeUndefined()
})

test('JSON comes back from a header, whatever the alphabet of its texts', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const value: unknown = JSON.parse(json)
      expect(JSON.stringify(decodeJsonBase64(encodeJsonBase64(value)))).toBe(JSON.stringify(value))
    }),
  )
  expect(decodeJsonBase64(encodeJsonBase64({ text: 'Zürich ₿ 🚀' }))).toEqual({ text: 'Zürich ₿ 🚀' })
})

test('what is not base64 of UTF-8 of JSON is undefined and never throws', () => {
  const broken = [
    '',
    '!!!!',
    encodeBase64(Uint8Array.of(0xff, 0xfe)),
    encodeBase64(Uint8Array.of(0xef, 0xbb, 0xbf, 0x31)),
    btoa('{"a":'),
    btoa('{} {}'),
    btoa('undefined'),
  ]
  for (const text of broken) expect(decodeJsonBase64(text), text).toBeUndefined()
})
