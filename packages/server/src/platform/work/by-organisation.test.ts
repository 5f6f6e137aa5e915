import { expect, test } from 'vitest'
import { createByOrganisation } from './by-organisation.ts'

interface Item {
  readonly id: number
  readonly organisationId: string
}

/** Work that ends when the test says so. */
function stage() {
  const open = new Map<number, () => void>()
  const begun: number[] = []
  const limited = createByOrganisation()
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

const itemsOf = (organisationId: string, ...ids: number[]): Item[] => ids.map((id) => ({ id, organisationId }))

test('an organization has four places over all calls, an item is not begun twice, and another organization does not wait', async () => {
  const { begun, offer, end } = stage()
  const first = offer(itemsOf('a', 1, 2, 3))
  const second = offer([...itemsOf('a', 1, 4, 5), ...itemsOf('b', 10)])
  expect(begun).toEqual([1, 2, 3, 4, 10])
  end(10, 1, 2, 3, 4)
  await first
  expect(begun).toEqual([1, 2, 3, 4, 10, 5])
  end(5)
  await second
  const third = offer(itemsOf('a', 1))
  expect(begun.at(-1)).toBe(1)
  end(1)
  await third
})

test('a ninth organization is left out until one of eight has ended; another source has its own places', async () => {
  const { begun, offer, end } = stage()
  const eight = Array.from({ length: 8 }, (_, place) => offer(itemsOf(`org ${place}`, place)))
  await offer(itemsOf('ninth', 9))
  expect(begun).not.toContain(9)
  const other = offer(itemsOf('ninth', 20), 'polygon')
  end(0)
  await eight[0]
  const ninth = offer(itemsOf('ninth', 9))
  expect(begun.slice(8)).toEqual([20, 9])
  end(1, 2, 3, 4, 5, 6, 7, 9, 20)
  await Promise.all([...eight, other, ninth])
})

test('two sets of limits share nothing: the work of one service takes no place of another', async () => {
  const [one, other] = [stage(), stage()]
  const first = one.offer(itemsOf('a', 1, 2, 3, 4))
  const second = other.offer(itemsOf('a', 1, 2, 3, 4))
  expect(other.begun).toEqual([1, 2, 3, 4])
  one.end(1, 2, 3, 4)
  other.end(1, 2, 3, 4)
  await Promise.all([first, second])
})
