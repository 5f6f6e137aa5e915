import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { followCalls } from '../src/http/followed-calls.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: unknown = runInNewContext('gc')

test('a connection that closes is noticed also after a collection of garbage', async () => {
  const calls = followCalls()
  const connection = new AbortController()
  const follow = () => {
    const request = new Request('http://localhost/mcp', { signal: connection.signal })
    return calls.follow({ id: 1, signal: new AbortController().signal }, request)
  }
  const waiting = follow()
  for (let round = 0; round < 5; round += 1) {
    if (typeof collectGarbage === 'function') collectGarbage()
    await turn()
  }
  connection.abort()
  expect(waiting.isLost()).toBe(true)
  expect(waiting.signal.aborted).toBe(true)
  waiting.end()
})
