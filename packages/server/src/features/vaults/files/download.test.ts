import fc from 'fast-check'
import { expect, test } from 'vitest'
import { portionOf } from './download.ts'

const etag = '"ab"'
const part = (offset: number, length: number) => ({ kind: 'part', range: { offset, length } })

test.each([
  ['bytes=0-0', part(0, 1)],
  ['bytes=0-9', part(0, 10)],
  ['bytes=5-', part(5, 95)],
  ['bytes=99-', part(99, 1)],
  ['bytes=90-1000', part(90, 10)],
  ['bytes=-1', part(99, 1)],
  ['bytes=-100', part(0, 100)],
  ['bytes=-1000', part(0, 100)],
  ['Bytes= 1-2 ', part(1, 2)],
  ['bytes=100-', { kind: 'outside' }],
  ['bytes=100-200', { kind: 'outside' }],
  ['bytes=-0', { kind: 'outside' }],
  ['bytes=5-4', { kind: 'whole' }],
  ['bytes=-', { kind: 'whole' }],
  ['bytes=', { kind: 'whole' }],
  ['bytes=a-b', { kind: 'whole' }],
  ['bytes=0-1,5-6', { kind: 'whole' }],
  ['bytes=-1-2', { kind: 'whole' }],
  ['bytes=1.5-2', { kind: 'whole' }],
  ['lines=0-1', { kind: 'whole' }],
  ['bytes=9999999999999999-', { kind: 'whole' }],
  ['', { kind: 'whole' }],
])('of a file of 100 bytes, "%s" is answered as RFC 9110 says', (range, portion) => {
  expect(portionOf({ range }, { size: 100, etag })).toEqual(portion)
})

test('an empty file has no range', () => {
  for (const range of ['bytes=0-', 'bytes=0-0', 'bytes=-1'])
    expect(portionOf({ range }, { size: 0, etag })).toEqual({ kind: 'outside' })
  expect(portionOf({}, { size: 0, etag })).toEqual({ kind: 'whole' })
})

test('a range applies only to the content that If-Range names; another tag, a weak tag and a date get the whole file', () => {
  const requested = (ifRange: string) => portionOf({ range: 'bytes=1-2', 'if-range': ifRange }, { size: 9, etag })
  expect(requested(etag)).toEqual(part(1, 2))
  for (const other of ['"cd"', `W/${etag}`, 'Sun, 22 Nov 2026 00:00:00 GMT', '*', ''])
    expect(requested(other)).toEqual({ kind: 'whole' })
})

test('a caller that has the content already gets 304, whatever range it requests', () => {
  for (const tags of [etag, `W/${etag}`, `"x", ${etag}`, '*'])
    expect(portionOf({ 'if-none-match': tags, range: 'bytes=0-0' }, { size: 9, etag })).toEqual({ kind: 'unchanged' })
  expect(portionOf({ 'if-none-match': '"x"' }, { size: 9, etag })).toEqual({ kind: 'whole' })
})

test('no range leads outside the file or to an empty part', () => {
  const number = fc.oneof(fc.nat(200).map(String), fc.constant(''))
  fc.assert(
    fc.property(number, number, fc.nat(150), (first, last, size) => {
      const portion = portionOf({ range: `bytes=${first}-${last}` }, { size, etag })
      if (portion.kind !== 'part') return
      const { offset, length } = portion.range
      expect(length).toBeGreaterThan(0)
      expect(offset + length).toBeLessThanOrEqual(size)
    }),
  )
})
