import { IncomingMessage } from 'node:http'
import net from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { CountedRequest, tinyChunksMax } from './counted-request.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

test('the connection of a streamed body rests for its tiny chunks, also where they arrive a few at a time', () => {
  vi.useFakeTimers()
  const resumed = vi.spyOn(IncomingMessage.prototype, '_read').mockImplementation(() => undefined)
  const request = new CountedRequest(new net.Socket())
  request.slowTinyChunks()
  const receive = (chunks: number): void => {
    for (let count = 0; count < chunks; count += 1) request.push(Buffer.from('x'))
    resumed.mockClear()
    request._read(1)
  }
  receive(tinyChunksMax + 9)
  expect(resumed).toHaveBeenCalledOnce()
  receive(1)
  expect(resumed, 'ten chunks since the last rest').not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(resumed).toHaveBeenCalledOnce()
  receive(1_000)
  vi.advanceTimersByTime(99)
  expect(resumed).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(resumed).toHaveBeenCalledOnce()
})
