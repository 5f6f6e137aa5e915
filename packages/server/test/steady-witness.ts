import type { Witness } from '../src/platform/witness/witness.ts'

/** The witness of a database that is never restored, for tests of other parts. */
export const steadyWitness: Witness = {
  requireCurrent: () => undefined,
  isCurrent: () => true,
  cover: async () => undefined,
  compare: async () => undefined,
  status: async () => 'current',
}
