import { expect, expectTypeOf, test } from 'vitest'
import { type EventPayloads, eventCatalogue, eventTypes, findPayloadFault, isEventType } from './events.ts'

test('every event type has a description, and so has every member of its payload', () => {
  for (const type of eventTypes) {
    const { description, fields } = eventCatalogue[type]
    expect(description, type).toMatch(/^[A-Z0-9].*\.$/)
    for (const [name, field] of Object.entries(fields)) expect(field.description, `${type} ${name}`).toMatch(/^\S.*\.$/)
  }
})

test('a payload is faulty where a member is missing or has the wrong type, and not where one is added', () => {
  const payload = { withdrawalId: 'wdr_1', reason: 'partner-refused', failedAt: '2026-11-23T10:00:00.000Z' }
  expect(findPayloadFault('withdrawal.failed', { ...payload, later: 1 })).toBeUndefined()
  expect(findPayloadFault('withdrawal.failed', { ...payload, reason: null })).toBe('reason')
  expect(findPayloadFault('withdrawal.failed', { ...payload, failedAt: undefined })).toBe('failedAt')
})

test('an integer is a safe integer, and only a nullable member may be null', () => {
  const fields = eventCatalogue['deposit.success'].fields
  const payload = Object.fromEntries(
    Object.entries(fields).map(([name, { type }]) => [name, type === 'string' ? 'a' : 1]),
  )
  expect(findPayloadFault('deposit.success', payload)).toBeUndefined()
  for (const wrong of [1.5, 2 ** 53, '1', null])
    expect(findPayloadFault('deposit.success', { ...payload, blockNumber: wrong })).toBe('blockNumber')
})

test('names on the prototype of an object are no event types', () => {
  expect(['constructor', '__proto__', 'toString', ''].filter(isEventType)).toEqual([])
})

test('payloads are typed by the catalogue', () => {
  expectTypeOf<EventPayloads['vault.expiring']>().toEqualTypeOf<{
    readonly vaultId: string
    readonly expiresAt: string
  }>()
  expectTypeOf<EventPayloads['deposit.success']['logIndex']>().toEqualTypeOf<number>()
  expectTypeOf<EventPayloads['transfer.failed']['refundTxHash']>().toEqualTypeOf<string | null>()
})
