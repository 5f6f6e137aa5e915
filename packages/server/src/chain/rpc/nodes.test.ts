import { expect, test } from 'vitest'
import { ShiftedClock } from '../../../test/webhooks/clock.ts'
import { createNodes } from './nodes.ts'

test('a node that answers probes and fails all else is left for longer each time, until it has been up for a minute', () => {
  const clock = new ShiftedClock()
  const nodes = createNodes({ network: 'base', urls: ['http://127.0.0.1:9'], clock })
  const [node] = nodes.all
  if (node === undefined) throw new Error('no node')
  const pausesMs = [0, 0, 0, 60_000].map((upMs) => {
    nodes.markUp(node)
    clock.forward(upMs)
    nodes.markFailed(node, new Error('no response'))
    let pauseMs = 0
    for (; nodes.toProbe().length === 0; pauseMs += 1_000) clock.forward(1_000)
    return pauseMs
  })
  expect(pausesMs).toEqual([5_000, 10_000, 20_000, 5_000])
})
