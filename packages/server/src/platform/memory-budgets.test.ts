import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { memoryNeeded } from './memory-budgets.ts'

const root = path.resolve(import.meta.dirname, '../../../..')

test('the chart gives a process the memory of all of its budgets together', () => {
  const values = readFileSync(path.join(root, 'deploy/helm/purser/values.yaml'), 'utf8')
  const limits = [...values.matchAll(/limits: \{ memory: (\d+)Mi \}/g)].map(
    ([, mebibytes]) => Number(mebibytes) * 2 ** 20,
  )
  expect(limits.length).toBe(2)
  for (const limit of limits) expect(limit).toBeGreaterThanOrEqual(memoryNeeded())
})

test('a larger setting for bodies needs more memory for responses and payments too', () => {
  expect(memoryNeeded(128 * 2 ** 20) - memoryNeeded(64 * 2 ** 20)).toBe(200 * 2 ** 20)
})
