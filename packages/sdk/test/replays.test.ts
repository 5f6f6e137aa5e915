import { expect, test } from 'vitest'
import { type Claim, openReplays } from '../src/middleware/replays.ts'
import type { OwnResponse } from '../src/middleware/responses.ts'

const fingerprint = 'credential, method and address'
const payer = '0x1111111111111111111111111111111111111111'

function answerOf(bytes: number, headers: OwnResponse['headers'] = {}): OwnResponse {
  return { status: 200, headers, body: new Uint8Array(bytes) }
}

function sellable(claim: Claim): Extract<Claim, { kind: 'claimed' }> {
  if (claim.kind !== 'claimed') throw new Error(`the claim is ${claim.kind}`)
  return claim
}

test('an answer is kept for its time and not a moment longer', () => {
  let now = 1_000
  const replays = openReplays(300_000, () => now)
  sellable(replays.claim({ payer, id: 'a', fingerprint })).keep(answerOf(3))
  now += 299_999
  expect(replays.claim({ payer, id: 'a', fingerprint })).toMatchObject({ kind: 'replay', response: { status: 200 } })
  now += 1
  expect(replays.claim({ payer, id: 'a', fingerprint }).kind).toBe('claimed')
})

test('a purchase runs once, and its payer’s identifier is taken once it is answered', () => {
  const replays = openReplays(300_000, () => 0)
  const first = sellable(replays.claim({ payer, id: 'a', fingerprint }))
  expect(replays.claim({ payer, id: 'a', fingerprint }).kind).toBe('duplicate')
  first.free()
  const second = sellable(replays.claim({ payer, id: 'a', fingerprint: 'other' }))
  first.keep(answerOf(3))
  first.free()
  expect(replays.claim({ payer, id: 'a', fingerprint: 'other' }).kind).toBe('duplicate')
  second.keep(answerOf(3))
  expect(replays.claim({ payer: '0x22', id: 'a', fingerprint: 'theirs' }).kind, 'another payer').toBe('claimed')
  expect(replays.claim({ payer, id: 'a', fingerprint }).kind).toBe('conflict')
  expect(replays.claim({ payer, id: 'a', fingerprint: 'other' }).kind).toBe('replay')
})

test('at most 1,000 answers are kept, and the oldest goes first', () => {
  const replays = openReplays(300_000, () => 0)
  for (let one = 0; one <= 1_000; one++)
    sellable(replays.claim({ payer, id: `id-${one}`, fingerprint })).keep(answerOf(1))
  expect(replays.claim({ payer, id: 'id-1', fingerprint }).kind).toBe('replay')
  expect(replays.claim({ payer, id: 'id-0', fingerprint }).kind).toBe('claimed')
})

test('answers of 32 MB in all are kept, and none over 1 MB', () => {
  const replays = openReplays(300_000, () => 0)
  for (let one = 0; one < 40; one++)
    sellable(replays.claim({ payer, id: `id-${one}`, fingerprint })).keep(answerOf(1_000_000))
  const kept = Array.from({ length: 40 }, (_, one) => `id-${one}`).filter(
    (id) => replays.claim({ payer, id, fingerprint }).kind === 'replay',
  )
  expect(kept).toHaveLength(31)
  sellable(replays.claim({ payer, id: 'large', fingerprint })).keep(answerOf(1_000_001))
  expect(replays.claim({ payer, id: 'large', fingerprint }).kind).toBe('claimed')
})

test('an answer that replaces another of its identifier takes only its own place', () => {
  const replays = openReplays(300_000, () => 0)
  const both = [fingerprint, 'other'].map((own) => sellable(replays.claim({ payer, id: 'twice', fingerprint: own })))
  for (const one of both) one.keep(answerOf(1_000_000))
  for (let one = 0; one < 30; one++)
    sellable(replays.claim({ payer, id: `id-${one}`, fingerprint })).keep(answerOf(1_000_000))
  expect(replays.claim({ payer, id: 'twice', fingerprint: 'other' }).kind).toBe('replay')
})

test('headers of one connection are not kept, cookies stay apart', () => {
  const replays = openReplays(300_000, () => 0)
  const own = {
    date: 'now',
    'Content-Length': '1',
    'Keep-Alive': 'timeout=5',
    connection: 'close',
  }
  const claim = sellable(replays.claim({ payer, id: 'a', fingerprint }))
  claim.keep(answerOf(1, { ...own, 'set-cookie': ['a=1', 'b=2'], etag: '"x"' }))
  const again = replays.claim({ payer, id: 'a', fingerprint })
  const headers = { 'set-cookie': ['a=1', 'b=2'], etag: '"x"', 'Payment-Replayed': 'true' }
  expect(again).toEqual({ kind: 'replay', response: { status: 200, headers, body: new Uint8Array(1) } })
})

test('invented purchases drop no kept answer', () => {
  const replays = openReplays(300_000, () => 0)
  for (let one = 0; one < 10; one++) sellable(replays.claim({ payer, id: `id-${one}`, fingerprint })).keep(answerOf(1))
  const invented = Array.from({ length: 12_000 }, (_, one) =>
    sellable(replays.claim({ payer: '0x22', id: `invented-${one}`, fingerprint })),
  )
  for (const { free } of invented) free()
  for (let one = 0; one < 10; one++) expect(replays.claim({ payer, id: `id-${one}`, fingerprint }).kind).toBe('replay')
})

test('a payer with many answers drops its own, and none of another payer', () => {
  const replays = openReplays(300_000, () => 0)
  sellable(replays.claim({ payer, id: 'a', fingerprint })).keep(answerOf(1))
  for (let one = 0; one < 1_100; one++)
    sellable(replays.claim({ payer: '0x22', id: `id-${one}`, fingerprint })).keep(answerOf(1))
  expect(replays.claim({ payer, id: 'a', fingerprint }).kind).toBe('replay')
  expect(replays.claim({ payer: '0x22', id: 'id-1099', fingerprint }).kind).toBe('replay')
  expect(replays.claim({ payer: '0x22', id: 'id-0', fingerprint }).kind).toBe('claimed')
})
