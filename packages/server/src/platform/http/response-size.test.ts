import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Db } from '../db/db.ts'
import { failPlatform } from '../errors.ts'
import { JsonStream } from '../json-stream.ts'
import { createResponseLimits, type LimitResponse } from './response-size.ts'

const ctx = { ...toyDeps({} as unknown as Db), requestId: 'req_1' as const }
const mebibyte = 1_048_576

class Sending extends EventEmitter {
  destroyed = false

  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

function sizedStream(bytes: number) {
  const { body, bytes: bytesRead } = new JsonStream((async function* () {})(), bytes)
  return { status: 200, headers: {}, body: body as Readable, bytesRead }
}

/** Sends a response that nobody reads, and returns its status. */
function statusOf(limit: LimitResponse, shareOwner: string, response = sizedStream(100 * mebibyte)): number {
  const sending = new Sending()
  return limit({ ctx, shareOwner, method: 'GET', owe: () => undefined, response, sending }).status
}

/** Reports a change in a response that nobody reads. */
function reportOf(limit: LimitResponse, shareOwner: string, bytes: number): Sending {
  const sending = new Sending()
  const response = { status: 201, headers: {}, body: 'x'.repeat(bytes) }
  limit({ ctx, shareOwner, method: 'POST', owe: () => undefined, response, sending })
  return sending
}

test('JSON that is sent in pieces counts as the pieces that wait, and a refused one is destroyed', () => {
  const { ofOperations } = createResponseLimits(4 * mebibyte)
  const statuses = Array.from({ length: 3 }, () => statusOf(ofOperations, 'org_1'))
  expect(statuses).toEqual([200, 429, 429])
  expect(statusOf(ofOperations, 'org_2')).toBe(200)
  const refused = sizedStream(mebibyte)
  expect([statusOf(ofOperations, 'org_1', refused), refused.body.destroyed]).toEqual([429, true])
})

test('a file is charged by its mebibytes before its first chunk, and one that is refused is destroyed', () => {
  const { ofOperations } = createResponseLimits(4 * mebibyte)
  const charged: number[] = []
  const download = (charge: (cost: number) => void) => {
    const body = Readable.from(['x'])
    const response = { status: 200, headers: {}, body, fileBytes: 10 * mebibyte }
    const owe = () => undefined
    const sent = { ctx, shareOwner: 'org_1', method: 'GET', owe, charge, response, sending: new Sending() }
    return [ofOperations(sent).status, body.destroyed]
  }
  expect(download((cost) => charged.push(cost))).toEqual([200, false])
  expect(charged).toEqual([9])
  const refuse = () => {
    throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: 1 })
  }
  expect(download(refuse)).toEqual([429, true])
})

test('unread pages leave the memory of operations, and an address leaves memory to others', () => {
  const { ofOperations, ofPages } = createResponseLimits(16 * mebibyte)
  const statuses = Array.from({ length: 4 }, () => statusOf(ofPages, '203.0.113.1'))
  expect(statuses).toEqual([200, 200, 429, 429])
  expect(statusOf(ofPages, '203.0.113.2')).toBe(200)
  expect(statusOf(ofOperations, 'org_1')).toBe(200)
})

test('a report of a change is sent whatever others have, and cuts no other while its owner has little', () => {
  const { ofOperations } = createResponseLimits(4 * mebibyte)
  let others = 0
  while (statusOf(ofOperations, `other ${others}`, sizedStream(20_000)) === 200) others += 1
  const sent = Array.from({ length: 4 }, () => reportOf(ofOperations, 'org_9', 20_000))
  expect(sent.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false])
})

test('a report of a change cuts no download of its owner because others have filled the memory', () => {
  const { ofOperations } = createResponseLimits(16 * mebibyte)
  const download = new Sending()
  const common = { ctx, shareOwner: 'org_9', method: 'GET', owe: () => undefined }
  ofOperations({ ...common, response: sizedStream(mebibyte), sending: download })
  for (let other = 0; statusOf(ofOperations, `other ${other}`, sizedStream(700_000)) === 200; other += 1);
  for (let other = 0; statusOf(ofOperations, `small ${other}`, sizedStream(20_000)) === 200; other += 1);
  const report = reportOf(ofOperations, 'org_9', 20_000)
  expect([download.destroyed, report.destroyed]).toEqual([false, false])
})

test('reports beyond a full memory have an eighth of it together: then the oldest of the owner with the most is cut', () => {
  const { ofOperations } = createResponseLimits(4 * mebibyte)
  for (let other = 0; statusOf(ofOperations, `other ${other}`, sizedStream(20_000)) === 200; other += 1);
  const large = [reportOf(ofOperations, 'large', 20_000), reportOf(ofOperations, 'large', 20_000)]
  const single = Array.from({ length: 19 }, (_, index) => reportOf(ofOperations, `org_${index}`, 20_000))
  expect(large.map(({ destroyed }) => destroyed)).toEqual([true, true])
  expect(single.map(({ destroyed }) => destroyed)).toEqual(single.map(() => false))
})
