import { expect, test } from 'vitest'
import { collectBytes } from './collect-bytes.ts'

const byte = new Uint8Array([7])

test('a body in any chunks is collected as it was sent', () => {
  const body = Uint8Array.from({ length: 20_000 }, (_, index) => index % 251)
  for (const size of [1, 7, 4_096, 19_999, 20_000]) {
    const collected = collectBytes({ bytesMax: 20_000, tinyChunksMax: 20_000 })
    for (let at = 0; at < body.length; at += size) expect(collected.take(body.subarray(at, at + size))).toBe('taken')
    expect(collected.bytes()).toEqual(body)
  }
})

test('the beginning of a longer body is collected up to the limit', () => {
  const collected = collectBytes({ bytesMax: 3, tinyChunksMax: 9 })
  expect(collected.take(new Uint8Array([1, 2]))).toBe('taken')
  expect(collected.take(new Uint8Array([3, 4]))).toBe('too-large')
  expect([...collected.bytes()]).toEqual([1, 2, 3])
})

test('memory is that of the bytes: it grows by doubling, and never beyond the limit', () => {
  const lengths: number[] = []
  const allocate = (length: number) => {
    lengths.push(length)
    return new Uint8Array(length)
  }
  const collected = collectBytes({ bytesMax: 10_000, tinyChunksMax: 10_000 }, allocate)
  for (let sent = 0; sent < 10_000; sent++) collected.take(byte)
  expect(lengths).toEqual([0, 4_096, 8_192, 10_000])
})

test('a body in many tiny chunks is refused, and one in as many chunks of 64 bytes is not', () => {
  const tiny = collectBytes({ bytesMax: 10_000, tinyChunksMax: 100 })
  for (let sent = 0; sent < 100; sent++) expect(tiny.take(byte)).toBe('taken')
  expect(tiny.take(byte)).toBe('too-many-chunks')
  const usual = collectBytes({ bytesMax: 100_000, tinyChunksMax: 100 })
  for (let sent = 0; sent < 1_000; sent++) expect(usual.take(new Uint8Array(64))).toBe('taken')
})
