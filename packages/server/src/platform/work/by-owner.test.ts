import { expect, test } from 'vitest'
import { createByOwner } from './by-owner.ts'

interface Item {
  readonly id: number
  readonly shareOwner: string
}

/** Work that ends when the test says so. */
function stage() {
  const open = new Map<number, () => void>()
  const begun: number[] = []
  const limited = createByOwner()
  const work = ({ id }: Item): Promise<void> => {
    begun.push(id)
    return new Promise((resolve) => open.set(id, resolve))
  }
  const end = (...ids: number[]): void => {
    for (const id of ids) open.get(id)?.()
  }
  const offer = (items: readonly Item[], source = 'base') => limited(source, items, work)
  return { begun, offer, end }
}

const itemsOf = (shareOwner: string, ...ids: number[]): Item[] => ids.map((id) => ({ id, shareOwner }))

test('an owner has four slots over all calls, an item is not begun twice, and another owner does not wait', async () => {
  const { begun, offer, end } = stage()
  const first = offer(itemsOf('a', 1, 2, 3))
  const second = offer([...itemsOf('a', 1, 4, 5), ...itemsOf('b', 10)])
  expect(begun).toEqual([1, 2, 3, 10, 4])
  end(10, 1, 2, 3, 4)
  await first
  expect(begun).toEqual([1, 2, 3, 10, 4, 5])
  end(5)
  await second
  const third = offer(itemsOf('a', 1))
  expect(begun.at(-1)).toBe(1)
  end(1)
  await third
})

/** Eight owners with four items in progress and more that wait. Their ids begin with 1,000, 2,000 and so on. */
function fullStage() {
  const full = stage()
  const backlog = Array.from({ length: 8 }, (_, slot) =>
    itemsOf(`org ${slot}`, ...Array.from({ length: 20 }, (_, item) => (slot + 1) * 1_000 + item)),
  ).flat()
  const offered = full.offer(backlog)
  return { ...full, offered, backlog }
}

test('a ninth owner gets the next slot, although eight others are offered more whenever one of their items ends', async () => {
  const { begun, offer, end, backlog } = fullStage()
  expect(begun).toHaveLength(32)
  const ninth = offer(itemsOf('ninth', 1, 2))
  expect(begun).not.toContain(1)
  for (const done of begun.slice(0, 2)) {
    end(done)
    void offer([...backlog, ...itemsOf('org 0', 1_900 + done)])
    await Promise.resolve()
  }
  await expect.poll(() => begun.slice(32)).toEqual([1, 2])
  end(1, 2)
  await ninth
})

test('an item that runs or waits is not begun once more for another owner, which its organisation has after a change of plan', async () => {
  const { begun, offer, end } = stage()
  const first = offer(itemsOf('account', 1, 2, 3, 4, 5))
  const second = offer(itemsOf('organisation', 1, 5))
  expect(begun).toEqual([1, 2, 3, 4])
  end(1)
  await expect.poll(() => begun).toEqual([1, 2, 3, 4, 5])
  end(2, 3, 4, 5)
  await Promise.all([first, second])
  expect(begun).toHaveLength(5)
})

test('another source has its own slots', async () => {
  const { begun, offer, end } = fullStage()
  const other = offer(itemsOf('ninth', 1), 'polygon')
  expect(begun).toContain(1)
  end(1)
  await other
})

test('an item that waits is done once, as it was offered last', async () => {
  const limited = createByOwner({ slots: 1, atOnce: 1 })
  const first = Promise.withResolvers<void>()
  const done: string[] = []
  const offer = (id: number, note: string) =>
    limited('base', [{ id, shareOwner: 'a', note }], async (item) => {
      if (id === 1) await first.promise
      done.push(item.note)
    })
  const offers = [offer(1, 'first'), offer(2, 'old'), offer(2, 'new')]
  first.resolve()
  await Promise.all(offers)
  expect(done).toEqual(['first', 'new'])
})

test('an owner without items gets a slot although thousands of others wait', async () => {
  const { begun, offer, end } = stage()
  for (let slot = 0; slot < 12; slot += 1) {
    const ids = Array.from({ length: 600 }, (_, item) => (slot + 1) * 1_000 + item)
    void offer(itemsOf(`org ${slot}`, ...ids))
  }
  const late = offer(itemsOf('late', 1, 2))
  // Four of the twelve have no slot yet, and have waited longer.
  end(1_000, 2_000, 3_000, 4_000, 5_000)
  await expect.poll(() => begun).toContain(1)
  end(1)
  await late
  expect(begun).not.toContain(2)
})

test('two sets of limits share nothing: the work of one service takes no slot of another', async () => {
  const [one, other] = [stage(), stage()]
  const first = one.offer(itemsOf('a', 1, 2, 3, 4))
  const second = other.offer(itemsOf('a', 1, 2, 3, 4))
  expect(other.begun).toEqual([1, 2, 3, 4])
  one.end(1, 2, 3, 4)
  other.end(1, 2, 3, 4)
  await Promise.all([first, second])
})

test('items that wait are left out once the process stops, and those in progress end', async () => {
  const limited = createByOwner({ slots: 2, atOnce: 2 })
  const stopping = new AbortController()
  const inProgress = Promise.withResolvers<void>()
  const begun: number[] = []
  const work = ({ id }: Item) => {
    begun.push(id)
    return inProgress.promise
  }
  const offered = limited('base', itemsOf('a', 1, 2, 3, 4), work, stopping.signal)
  stopping.abort()
  inProgress.resolve()
  await offered
  await limited('base', itemsOf('b', 5), work, stopping.signal)
  expect(begun).toEqual([1, 2])
  await limited('base', itemsOf('a', 6), work)
  expect(begun).toEqual([1, 2, 6])
})
