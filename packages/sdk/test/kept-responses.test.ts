import { expect, test } from 'vitest'
import { type Kept, openKeptResponses } from '../src/middleware/kept-responses.ts'
import type { VerifiedPayment } from '../src/payments.ts'

function keptOf(bytes: number, payer = '0x01'): Kept {
  const conclude = () => Promise.reject(new Error('Nothing is concluded here.'))
  const payment = { payer } as VerifiedPayment
  return { response: { status: 200, headers: {}, body: new Uint8Array(bytes) }, payment, conclude }
}

function stage(bytesMax = 1_000_000) {
  const time = { now: 1_000 }
  const dropped: Kept[] = []
  const onDropped = (kept: Kept) => void dropped.push(kept)
  return { time, dropped, kept: openKeptResponses({ bytesMax, msMax: 60_000, onDropped }, () => time.now) }
}

function taken(answers: ReturnType<typeof stage>['kept'], key: string) {
  const response = answers.take(key)
  if (response === undefined || response === 'busy') throw new Error(`${key} is ${response ?? 'gone'}`)
  return response
}

test('an answer that a request is about to serve is not given up, for its time or for others’ bytes', () => {
  const { kept, dropped, time } = stage()
  const own = keptOf(10)
  kept.keep('own', own)
  const serving = taken(kept, 'own')
  for (let other = 0; other < 5; other++) kept.keep(`other ${other}`, keptOf(400_000))
  time.now += 60_001
  kept.keep('last', keptOf(10))
  expect(dropped).not.toContain(own)
  expect(dropped).toHaveLength(5)
  expect(kept.take('own')).toBe('busy')
  serving.drop()
  expect(kept.take('own')).toBeUndefined()
  expect(dropped).not.toContain(own)
})

test('one that is put back after its time is given up then, and reported once', () => {
  const { kept, dropped, time } = stage()
  const own = keptOf(10)
  kept.keep('own', own)
  const serving = taken(kept, 'own')
  time.now += 60_001
  expect(kept.take('another')).toBeUndefined()
  expect(dropped).toEqual([])
  serving.putBack()
  expect(dropped).toHaveLength(1)
  expect(kept.take('own')).toBeUndefined()
})

test('one that is put back in time is there for the next request, with the right that it may have', () => {
  const { kept, dropped } = stage()
  kept.keep('own', keptOf(10))
  taken(kept, 'own').putBack('right')
  expect(taken(kept, 'own').redemptionToken).toBe('right')
  expect(dropped).toEqual([])
})

test('the oldest go first, and what is served frees its bytes', () => {
  const { kept, dropped } = stage(100_000)
  const [a, b] = [keptOf(40_000), keptOf(40_000)]
  kept.keep('a', a)
  kept.keep('b', b)
  taken(kept, 'a').drop()
  kept.keep('c', keptOf(40_000))
  expect(dropped).toEqual([])
  kept.keep('d', keptOf(40_000))
  expect(dropped).toEqual([b])
})

test('many answers of one payer cost no other payer theirs, however the address is written', () => {
  const { kept, dropped } = stage(100_000)
  const honest = keptOf(20_000, '0xaa')
  kept.keep('honest', honest)
  const hostile = Array.from({ length: 40 }, (_, index) => keptOf(15_000, index % 2 === 0 ? '0xbB' : '0xBb'))
  for (const [index, one] of hostile.entries()) kept.keep(`hostile ${index}`, one)
  expect(dropped).not.toContain(honest)
  expect(dropped).toEqual(hostile.slice(0, dropped.length))
  expect(taken(kept, 'honest').response.body).toHaveLength(20_000)
})
