import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { aKeptLog } from '../../../test/log-lines.ts'
import { aToyServer, beginToys, endToys } from '../../../test/toy-server.ts'

beforeEach(beginToys)
afterEach(endToys)

const Line = z.record(z.string(), z.unknown())

test('the access log has a line for each response, refusals included: request, method, declared path, status and duration, and nothing that a caller sent', async () => {
  const { lines, log } = aKeptLog()
  const { base } = await aToyServer({ accessLog: log })
  const authorization = 'Bearer org1 key1'
  const sent = [
    await fetch(`${base}/toys/each?limit=2`, { headers: { authorization } }),
    await fetch(`${base}/toys/shown?ticket=private-ticket`),
    await fetch(`${base}/toys/each`, { headers: { authorization: 'Bearer private-key' } }),
    await fetch(`${base}/private-path?private-query`, { headers: { authorization } }),
    await fetch(`${base}/toys`, { method: 'POST', headers: { authorization }, body: 'private-body' }),
    await fetch(`${base}/page`),
  ]
  for (const response of sent) await response.arrayBuffer()
  await expect.poll(() => lines.length).toBe(sent.length)
  const read = lines.map((line) => Line.parse(JSON.parse(line)))
  const byRequest = new Map(read.map((line) => [line.requestId, line]))
  const shown = sent.map(({ headers }) => byRequest.get(headers.get('x-request-id')))
  const common = { level: 30, msg: 'access', time: expect.any(String), ms: expect.any(Number) }
  const lineOf = (method: string, route: string | undefined, status: number) =>
    expect.objectContaining({ ...common, method, status, ...(route !== undefined && { route }) })
  expect(shown).toEqual([
    lineOf('GET', '/toys/each', 200),
    lineOf('GET', '/toys/shown', 200),
    lineOf('GET', '/toys/each', 401),
    lineOf('GET', undefined, 404),
    lineOf('POST', '/toys', 415),
    lineOf('GET', '/page', 200),
  ])
  const fields = ['level', 'method', 'ms', 'msg', 'requestId', 'route', 'status', 'time']
  expect([...new Set(read.flatMap(Object.keys))].toSorted()).toEqual(fields)
  expect(lines.join('')).not.toContain('private')
})
