import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { isProblem } from './errors.ts'
import { createSemaphores } from './semaphores.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Work that ends on request, and the order in which its parts began. */
function pieces() {
  const began: number[] = []
  const ends = new Map<number, () => void>()
  const piece = (index: number) => () =>
    new Promise<number>((resolve) => {
      began.push(index)
      ends.set(index, () => resolve(index))
    })
  return { began, piece, end: (index: number) => ends.get(index)?.() }
}

const two = [{ name: 'one vault', widthMax: 2 }]

test('of concurrent work as much runs as permitted, the rest in the order of arrival', async () => {
  const inTurn = createSemaphores(16)
  const { began, piece, end } = pieces()
  const all = [0, 1, 2, 3, 4].map((index) => inTurn(two, piece(index)))
  await expect.poll(() => began).toEqual([0, 1])
  end(1)
  await expect.poll(() => began).toEqual([0, 1, 2])
  end(0)
  end(2)
  await expect.poll(() => began).toEqual([0, 1, 2, 3, 4])
  end(3)
  end(4)
  expect(await Promise.all(all)).toEqual([0, 1, 2, 3, 4])
})

test('failed work releases its place like successful work', async () => {
  const inTurn = createSemaphores(16)
  const failing = inTurn([{ name: 'a', widthMax: 1 }], () => Promise.reject(new Error('no')))
  const next = inTurn([{ name: 'a', widthMax: 1 }], async () => 'done')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('done')
})

test('work that waits for the first of two places leaves the second to others', async () => {
  const inTurn = createSemaphores(10)
  const { began, piece, end } = pieces()
  const tenant = { name: 'tenant', widthMax: 'half' } as const
  const busy = [0, 1, 2].map((index) => inTurn([{ name: 'busy', widthMax: 1 }, tenant], piece(index)))
  const other = inTurn([{ name: 'quiet', widthMax: 1 }, tenant], piece(9))
  await expect.poll(() => began).toEqual([0, 9])
  end(9)
  await other
  for (const index of [0, 1, 2]) {
    await expect.poll(() => began).toContain(index)
    end(index)
  }
  await Promise.all(busy)
})

test('work that has waited for ten seconds is refused, and takes nobody’s place', async () => {
  const inTurn = createSemaphores(16)
  const { began, piece, end } = pieces()
  const one = [{ name: 'one', widthMax: 1 }]
  const first = inTurn(one, piece(0))
  const late = inTurn(one, piece(1)).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(isProblem(await late, 'service-unavailable')).toBe(true)
  const third = inTurn(one, piece(2))
  end(0)
  await first
  await expect.poll(() => began).toEqual([0, 2])
  end(2)
  await third
})

test('a queue has a limit: the thousand and first to wait is refused immediately', async () => {
  const inTurn = createSemaphores(16)
  const { piece, end } = pieces()
  const one = [{ name: 'one', widthMax: 1 }]
  const first = inTurn(one, piece(0))
  const waiting = Array.from({ length: 1_000 }, () => inTurn(one, async () => 'done'))
  await expect(inTurn(one, async () => 'never')).rejects.toMatchObject({ code: 'service-unavailable' })
  end(0)
  await first
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['done']))
})
