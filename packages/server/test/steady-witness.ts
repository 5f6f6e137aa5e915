import type { Witness } from '../src/platform/witness/witness.ts'

/** The witness of a database that nobody ever restores: for tests of what stands beside it. */
export const steadyWitness: Witness = {
  requireCurrent: () => undefined,
  isCurrent: () => true,
  cover: async () => undefined,
  compare: async () => undefined,
  status: async () => 'current',
}
