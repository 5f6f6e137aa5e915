import { expect, test } from 'vitest'
import { batch } from './batch.ts'

/** A batch whose runs end in the order in which they began; returns the sizes of the runs. */
async function sizesOf(items: number, hasSpareTime: boolean, itemsMax = 128): Promise<number[]> {
  const sizes: number[] = []
  const double = batch<number, number>(
    { itemsMax, batchesMax: 1, halved: { above: 16, hasSpareTime: () => hasSpareTime } },
    async (some) => {
      sizes.push(some.length)
      return some.map((one) => 2 * one)
    },
  )
  const given = Array.from({ length: items }, (_, index) => index)
  expect(await Promise.all(given.map(double))).toEqual(given.map((one) => 2 * one))
  return sizes
}

test('a process with time to spare runs parts of a batch, none of which is smaller than the least size except the last', async () => {
  expect(await sizesOf(64, true)).toEqual([32, 16, 16])
  expect(await sizesOf(32, true)).toEqual([16, 16])
  expect(await sizesOf(20, true)).toEqual([16, 4])
  expect(await sizesOf(16, true)).toEqual([16])
  expect(await sizesOf(1, true)).toEqual([1])
})

test('a busy process keeps batches whole', async () => {
  expect(await sizesOf(64, false)).toEqual([64])
})

test('no batch has more than the most items', async () => {
  expect(await sizesOf(300, false)).toEqual([128, 128, 44])
  expect(await sizesOf(30, true, 10)).toEqual([10, 10, 10])
})

test('a part that fails does not fail the others', async () => {
  let runs = 0
  const failing = batch<number, number>(
    { itemsMax: 128, batchesMax: 1, halved: { above: 16, hasSpareTime: () => true } },
    async (some) => {
      runs += 1
      if (runs === 1) throw new Error('the first part')
      return some
    },
  )
  const outcomes = await Promise.allSettled(Array.from({ length: 32 }, (_, index) => failing(index)))
  expect(outcomes.map(({ status }) => status)).toEqual([
    ...Array.from({ length: 16 }, () => 'rejected'),
    ...Array.from({ length: 16 }, () => 'fulfilled'),
  ])
})
