import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { instantOf } from '../clock.ts'
import { createAdmission, replayChargesOf } from '../http/admission.ts'
import type { ApiKeyId } from '../ids.ts'
import { payForPages, type ReplayCharges, replayCost } from './replay-cost.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A caller with ten tokens at once and ten a second, whose clock is that of the timers. */
function aCaller() {
  const start = performance.now()
  const clock = { now: () => instantOf(Math.round(performance.now() - start)) }
  const addressLimit = { perSecond: 1_000, burst: 1_000 }
  const admit = createAdmission({ keyLimit: { perSecond: 10, burst: 10 }, addressLimit }, clock)
  const ofKey = (apiKeyId: ApiKeyId) => {
    const charges = replayChargesOf(admit, {
      actor: { kind: 'api-key', apiKeyId },
      shareOwner: 'org_1',
      tenant: { environment: 'live' },
    })
    // Half of the burst is five tokens, and ten are refilled in a second.
    const left = () => Math.round(5 - charges.owe(0) * 10)
    const request = () => admit.caller({ id: apiKeyId, owner: 'org_1/live' }, { headers: () => undefined })
    return { charges, left, request }
  }
  return { ...ofKey('key_1'), ofKey }
}

const open = { isOpen: true }

/** Streams of a caller that replay pages of this cost without end; returns the number of pages that they have paid for. */
function replays({
  streams,
  cost,
  charges,
}: {
  readonly streams: number
  readonly cost: number
  readonly charges: ReplayCharges
}) {
  const line = { isOpen: true }
  let pages = 0
  const replay = async (): Promise<void> => {
    const { pay } = payForPages(charges)
    while (line.isOpen) {
      pages += 1
      await pay(cost, line)
      await Promise.resolve()
      if (pages > 100_000) throw new Error('a replay is not limited')
    }
  }
  const ended = Promise.all(Array.from({ length: streams }, replay))
  return { pages: () => pages, line, ended }
}

test('each event counts its bytes, and at least those of its work', () => {
  expect(replayCost([{ length: 65_536 }, { length: 1 }], 32_768)).toBe(1.5)
})

test('a replay of less than a token costs no more than its request', async () => {
  const owed: number[] = []
  const payments = payForPages({ owe: (cost) => owed.push(cost), takeOverdue: () => false })
  await payments.pay(0.9, open)
  expect(owed).toEqual([])
})

test.each([1, 50])('%i streams of a caller replay as many pages as its rate permits, and not more', async (streams) => {
  const { charges } = aCaller()
  const { pages, line, ended } = replays({ streams, cost: 1, charges })
  await vi.advanceTimersByTimeAsync(0)
  const first = pages()
  expect(first).toBeLessThanOrEqual(streams + 11)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(pages() - first).toBeLessThanOrEqual(103)
  expect(pages() - first).toBeGreaterThan(90)
  line.isOpen = false
  await vi.advanceTimersByTimeAsync(1_000)
  await ended
})

test('a replay that may never go on ends with the stream', async () => {
  const line = { isOpen: true }
  const paid = payForPages({ owe: () => 600, takeOverdue: () => false }).pay(5, line)
  await vi.advanceTimersByTimeAsync(5_000)
  line.isOpen = false
  await vi.advanceTimersByTimeAsync(1_000)
  await expect(paid).resolves.toBeUndefined()
})

test('requests of the caller find half of the limit while its replays go on', async () => {
  const { charges, left } = aCaller()
  const { line, ended } = replays({ streams: 20, cost: 1, charges })
  const seen: number[] = []
  for (let second = 0; second < 20; second++) {
    await vi.advanceTimersByTimeAsync(1_000)
    seen.push(left())
  }
  // After the first pages, which the requests of the streams have paid for.
  expect(Math.min(...seen.slice(3))).toBeGreaterThanOrEqual(3)
  line.isOpen = false
  await vi.advanceTimersByTimeAsync(1_000)
  await ended
})

/** Uses up what is refilled of a caller's limit for so many seconds, as its requests do. */
async function useUp(request: () => void, seconds: number): Promise<void> {
  for (let tick = 0; tick < seconds * 20; tick++) {
    try {
      for (;;) request()
    } catch {
      await vi.advanceTimersByTimeAsync(50)
    }
  }
}

test.each([1, 50])(
  '%i streams of a caller whose requests use up its limit send a page in about five seconds',
  async (streams) => {
    const { charges, request } = aCaller()
    const { pages, line, ended } = replays({ streams, cost: 1, charges })
    await useUp(request, 1)
    const first = pages()
    await useUp(request, 60)
    expect(pages() - first).toBeLessThanOrEqual(13)
    expect(pages() - first).toBeGreaterThanOrEqual(9)
    line.isOpen = false
    await vi.advanceTimersByTimeAsync(1_000)
    await ended
  },
)

test('the overdue pages of all callers of an owner are at most one a second', async () => {
  const { ofKey } = aCaller()
  const callers = Array.from({ length: 20 }, (_, at) => ofKey(`key_${at}`))
  const takeAll = () => callers.filter(({ charges }) => charges.takeOverdue()).length
  expect([takeAll(), takeAll()]).toEqual([1, 0])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(takeAll()).toBe(1)
})

test('a last page is charged and not waited for', () => {
  const owed: number[] = []
  const payments = payForPages({ owe: (cost) => owed.push(cost), takeOverdue: () => false })
  payments.charge(3)
  expect(owed).toEqual([2])
})
