import { expect, test } from 'vitest'
import { mutated } from './mutation.ts'
import { settlementFaults } from './settlement-faults.ts'
import { walletFaults } from './wallet-faults.ts'

test('each planted fault changes one place of the code as it is now', () => {
  for (const fault of [...settlementFaults, ...walletFaults]) expect(mutated(fault)).toContain(fault.replace)
})
