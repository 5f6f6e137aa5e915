import { IncomingMessage } from 'node:http'
import net from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { CountedRequest, tinyChunksMax } from './counted-request.ts'
import { createReadingPauses } from './pause-reading.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

test('the connection of a streamed body pauses for its tiny chunks, also where they arrive a few at a time', () => {
  vi.useFakeTimers()
  const resumed = vi.spyOn(IncomingMessage.prototype, '_read').mockImplementation(() => undefined)
  const pauses = createReadingPauses()
  const request = new CountedRequest(new net.Socket())
  request.limitTinyChunks({ pauseFor: (chunks) => pauses('org_1', chunks), refuse: () => undefined })
  const receive = (chunks: number): void => {
    for (let count = 0; count < chunks; count += 1) request.push(Buffer.from('x'))
    resumed.mockClear()
    request._read(1)
  }
  receive(tinyChunksMax + 9)
  expect(resumed).toHaveBeenCalledOnce()
  receive(1)
  expect(resumed, 'ten chunks since the last pause').not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(resumed).toHaveBeenCalledOnce()
  receive(1_000)
  vi.advanceTimersByTime(99)
  expect(resumed).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(resumed).toHaveBeenCalledOnce()
})

test('a connection that pauses is not cut as a silent one', () => {
  vi.useFakeTimers()
  vi.spyOn(IncomingMessage.prototype, '_read').mockImplementation(() => undefined)
  const request = new CountedRequest(new net.Socket())
  request.socket.setTimeout(60_000)
  request.limitTinyChunks({ pauseFor: () => 90_000, refuse: () => undefined })
  for (let count = 0; count <= tinyChunksMax; count += 1) request.push(Buffer.from('x'))
  request._read(1)
  expect(request.socket.timeout).toBe(0)
  vi.advanceTimersByTime(90_000)
  expect(request.socket.timeout).toBe(60_000)
})
