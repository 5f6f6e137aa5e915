import fc from 'fast-check'
import { Receipt } from 'mppx'
import { expect, test } from 'vitest'
import vectors from '../vectors/mpp-receipt.json' with { type: 'json' }
import { encodeMppJson } from './encoding.ts'
import { formatReceipt, type MppReceipt, parseReceipt } from './receipt.ts'

const text = fc.string({ minLength: 1, maxLength: 60, unit: 'grapheme' })
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const receipt: fc.Arbitrary<MppReceipt> = fc.record({
  status: fc.constant('success'),
  method: fc.constantFrom('tempo', 'evm'),
  timestamp: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString()),
  reference: text,
  challengeId: optional(text),
  chainId: optional(fc.integer({ min: 1 })),
  externalId: optional(text),
})
const sample = { status: 'success', method: 'evm', timestamp: '2026-11-21T12:00:01Z', reference: '0xab' } as const

test('each receipt of the vectors is read as it was meant', () => {
  expect(vectors.receipts.length).toBe(2)
  for (const { receipt: written, header } of vectors.receipts) expect(parseReceipt(header)).toEqual(written)
})

test('a receipt is read by mppx as it was written, and what mppx writes is read as it was meant', () => {
  fc.assert(
    fc.property(receipt, (given) => {
      const read = Receipt.deserialize(formatReceipt(given))
      expect(read).toEqual(JSON.parse(JSON.stringify(given)))
      expect(parseReceipt(Receipt.serialize(read))).toEqual(given)
      expect(parseReceipt(formatReceipt(given))).toEqual(given)
    }),
  )
})

test('only the members of a receipt are written', () => {
  const more = { ...sample, privateNote: 'sk_live_secret' }
  expect(parseReceipt(formatReceipt(more))).toEqual(sample)
  expect(Buffer.from(formatReceipt(more), 'base64url').toString()).not.toContain('secret')
})

test('what is not a receipt is not read as one', () => {
  for (const change of [
    { status: 'failed' },
    { method: undefined },
    { method: '' },
    { timestamp: 'now' },
    { timestamp: 1_763_726_401 },
    { reference: undefined },
    { chainId: '84532' },
    { chainId: 0 },
    { chainId: 1.5 },
    { challengeId: 7 },
    { externalId: {} },
  ])
    expect(
      parseReceipt(encodeMppJson(JSON.parse(JSON.stringify({ ...sample, ...change })))),
      JSON.stringify(change),
    ).toBe(undefined)
  for (const value of ['', 'e30', 'W10', '%', '{"status":"success"}'])
    expect(parseReceipt(value), value).toBeUndefined()
})
