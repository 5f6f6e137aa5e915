import { randomBytes } from 'node:crypto'
import { eventTypes } from '@purser/protocol'
import { expect, test } from 'vitest'
import { unwrap } from '../../../../../sdk/src/webhooks/index.ts'
import { testHeaders } from '../../../../../sdk/src/webhooks/test-headers.ts'
import { eventPayloads } from '../schema.ts'
import { eventSamples, samplePayload } from './trigger.ts'

const clock = { now: () => new Date('2026-11-22T12:00:00.000Z') }
const deps = { clock, random: { bytes: (count: number) => randomBytes(count) } }
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

test.each(eventTypes)('a sample of %s matches its published schema, without further members', (type) => {
  expect(eventPayloads[type]?.strict().parse(samplePayload(type, deps))).toEqual(expect.anything())
})

test('receivers that use the client recognize every sample event', () => {
  for (const { type, payload } of eventSamples(deps).types) {
    const body = JSON.stringify({ eventId: 'evt_1', type, payload })
    expect(unwrap(body, testHeaders(body, secret), secret).type).toBe(type)
  }
  expect(eventSamples(deps).types.map(({ type }) => type)).toEqual(eventTypes)
})

test('each type lists its members with the type that its sample has', () => {
  for (const { type, description, members, payload } of eventSamples(deps).types) {
    expect(description, type).toMatch(/\.$/)
    expect(members.map(({ name }) => name)).toEqual(Object.keys(payload))
    for (const member of members) {
      const value = payload[member.name]
      if (value === null) expect(member, `${type} ${member.name}`).toMatchObject({ nullable: true })
      else expect(typeof value, `${type} ${member.name}`).toBe(member.type === 'integer' ? 'number' : 'string')
      if (member.type === 'time' && value !== null) expect(Date.parse(String(value)), member.name).not.toBeNaN()
    }
  }
})

test('two samples share no id', () => {
  const [one, other] = [samplePayload('transfer.completed', deps), samplePayload('transfer.completed', deps)]
  for (const name of ['transactionId', 'walletId', 'txHash'] as const) expect(one[name]).not.toBe(other[name])
})
