import { existsSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { mutated } from './mutation.ts'
import { settlementFaults } from './settlement-faults.ts'
import { walletFaults } from './wallet-faults.ts'

test('each planted fault changes one place of the code as it is now', () => {
  for (const fault of [...settlementFaults, ...walletFaults]) expect(mutated(fault)).toContain(fault.replace)
})

test('each planted fault that a direct test finds names a test file', () => {
  const named = [...settlementFaults, ...walletFaults].flatMap(({ testedBy }) => testedBy ?? [])
  expect(named.filter((file) => !existsSync(path.join(import.meta.dirname, '../..', file)))).toEqual([])
})
