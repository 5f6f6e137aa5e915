import { signWebhook } from '@purser/protocol'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createLog } from '../../../platform/log.ts'
import type { EndpointRow } from './queue-store.ts'
import { bodyOf, createSignDelivery, nextAttemptAt, retryAfterMs, retryDelaysMs } from './send.ts'

const now = new Date('2026-05-01T12:00:00.000Z')
const hour = 3_600_000

function delayMs(step: number, byte: number, retryAfter?: string): number | undefined {
  const random = { bytes: (length: number) => new Uint8Array(length).fill(byte) }
  const at = nextAttemptAt({ step, retryAfter }, { now, random })
  return at === undefined ? undefined : at.getTime() - now.getTime()
}

test('a delivery is tried ten times within about 32 hours', () => {
  expect(retryDelaysMs.map((ms) => ms / 1_000)).toEqual([5, 30, 120, 600, 1_800, 7_200, 18_000, 36_000, 50_400])
  expect(delayMs(9, 0)).toBeUndefined()
  expect(Math.round(retryDelaysMs.reduce((sum, ms) => sum + ms, 0) / hour)).toBe(32)
})

test('every delay has a jitter of at most a tenth to either side', () => {
  for (const [step, planned] of retryDelaysMs.entries()) {
    expect(delayMs(step, 0)).toBe(Math.round(planned * 0.9))
    expect(delayMs(step, 255)).toBe(Math.round(planned * 1.1))
  }
})

test('Retry-After as seconds or as a date delays the next attempt, and never advances it', () => {
  expect(delayMs(0, 0, '60')).toBe(60_000)
  expect(delayMs(0, 0, 'Fri, 01 May 2026 12:10:00 GMT')).toBe(600_000)
  expect(delayMs(8, 0, '1')).toBe(12.6 * hour)
  expect(delayMs(0, 0, 'Fri, 01 May 2020 12:10:00 GMT')).toBe(4_500)
})

test('Retry-After is bounded by 14 hours', () => {
  expect(delayMs(0, 0, '999999999')).toBe(14 * hour)
  expect(delayMs(0, 0, 'Fri, 01 May 2099 12:10:00 GMT')).toBe(14 * hour)
})

test.each(['', '-1', '1.5', '0x10', '99999999999', '2026-05-01', 'Fri, 99 Foo 2026 12:10:00 GMT', '1e3', '٣'])(
  'a Retry-After of %j is ignored',
  (header) => {
    expect(retryAfterMs(header, now)).toBeUndefined()
  },
)

const delivery = {
  eventId: 'evt_01h455vb4pex5vsknk084sn02q',
  type: 'vault.sealed',
  payload: '{"summary": "é"}',
} as const

function endpointWith(secrets: readonly string[]): EndpointRow {
  const [id, organisationId] = ['wh_01h455vb4pex5vsknk084sn02q', 'org_01h455vb4pex5vsknk084sn02q'] as const
  const sealed = secrets.map((secret) => Buffer.from(secret))
  return { id, organisationId, environment: 'test', url: 'https://example.com', failingSince: null, secrets: sealed }
}

/** Signs with the first bytes of the message, in place of a key, and counts the signatures. */
function aSigner(isBroken = () => false) {
  const counts = { signatures: 0 }
  const sign = async (message: Uint8Array): Promise<Uint8Array> => {
    counts.signatures += 1
    if (isBroken()) throw new Error('no key')
    return message.slice(0, 64)
  }
  const sealing = { seal: (bytes: Uint8Array) => bytes, open: (bytes: Uint8Array) => bytes }
  const sealer = { ...sealing, ofMany: sealing }
  const signTo = (_: object, message: Uint8Array) => sign(message)
  const serviceSeal = { kid: 'kid', sign, publicKeys: async () => [], signTo, publicKeysTo: async () => [] }
  return { counts, sign: createSignDelivery({ sealer, serviceSeal, log: createLog({ level: 'silent' }) }) }
}

test('endpoints of an event get the headers of signWebhook, and one Ed25519 signature for each second', async () => {
  const { counts, sign } = aSigner()
  const secrets = [[`whsec_${'A'.repeat(43)}=`], [`whsec_${'B'.repeat(42)}A=`, `whsec_${'C'.repeat(42)}A=`]]
  const body = Buffer.from(bodyOf(delivery))
  for (const timestamp of [1_795_305_600, 1_795_305_601]) {
    for (const own of secrets) {
      const message = { id: delivery.eventId, timestamp, body }
      const headers = signWebhook(message, { secrets: own, signEd25519: (text) => text.slice(0, 64) })
      const signed = await sign(endpointWith(own), delivery, timestamp)
      expect(signed?.headers).toEqual(headers)
      expect(Buffer.from(signed?.body ?? [])).toEqual(body)
    }
  }
  expect(counts.signatures).toBe(2)
})

test('an endpoint is signed for after the signature of the same event and second has failed for another', async () => {
  let isBroken = true
  const { sign } = aSigner(() => isBroken)
  const endpoint = endpointWith([`whsec_${'A'.repeat(43)}=`])
  expect(await sign(endpoint, delivery, 1_795_305_600)).toBeUndefined()
  isBroken = false
  expect((await sign(endpoint, delivery, 1_795_305_600))?.headers).toBeDefined()
})

test('a message is kept for a second at most', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { counts, sign } = aSigner()
  const endpoint = endpointWith([`whsec_${'A'.repeat(43)}=`])
  for (const signatures of [1, 1]) {
    await sign(endpoint, delivery, 1_795_305_600)
    expect(counts.signatures).toBe(signatures)
  }
  vi.advanceTimersByTime(1_000)
  await sign(endpoint, delivery, 1_795_305_600)
  expect(counts.signatures).toBe(2)
})
